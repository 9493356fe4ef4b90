"""If these fail, `um.evaluate` tells another story than the metrics it is made of."""

import io
import json

import numpy as np
import pytest
from rich.console import Console
from scipy.sparse import csr_array

import umpteen as um
from umpteen.errors import LabelsError, LabelsShapeError, ParameterError
from umpteen.report.tables import render
from umpteen.validation import check_labels

TRAIN = [[0], [0], [0], [0, 1], [0, 1], [0, 1], [1, 2], [2, 3], [4]]
TEST = [[0], [0, 1], [2, 3], [4, 5], []]
TOP = um.TopK(
    labels=[[0, 1, 2], [1, 0, 3], [0, 3, 2], [5, 0, -1], [1, 2, 3]],
    scores=[[0.9, 0.5, 0.2]] * 3 + [[0.9, 0.5, -np.inf]] + [[0.9, 0.5, 0.2]],
)


@pytest.fixture
def report():
    return um.evaluate(TOP, TEST, TRAIN, ks=(1, 3))


def test_numbers_are_those_of_the_functions(report):
    chance = um.metrics.propensity(csr_array(check_labels(TRAIN, n_labels=6)))
    for k in (1, 3):
        assert report.metrics[f"precision@{k}"] == um.metrics.precision_at_k(TEST, TOP, k)
        assert report.metrics[f"macro F1@{k}"] == um.metrics.macro_f1_at_k(TEST, TOP, k)
        assert report.metrics[f"PSP@{k}"] == um.metrics.psp_at_k(TEST, TOP, k, chance)
        assert report.metrics[f"PSnDCG@{k}"] == um.metrics.psndcg_at_k(TEST, TOP, k, chance)


def test_counts(report):
    assert (report.n_samples, report.n_labels) == (5, 6)
    assert (report.n_samples_without_labels, report.n_unseen_labels) == (1, 1)


def test_bands_by_hand(report):
    """Counts 6, 4, 2, 1, 1: label 0 holds 43 %, 0 and 1 hold 71 %, 0 to 2 hold 86 %."""
    bands = {band.name: band for band in report.bands}
    sizes = {name: (band.n_labels, band.span) for name, band in bands.items()}
    assert sizes == {
        "head": (2, "4-6"),
        "torso": (1, "2"),
        "tail": (2, "1"),
        "unseen": (1, "0"),
    }
    assert bands["head"].recall == 1
    assert bands["tail"].recall == 0.5


def test_groups_share_out_the_test(report):
    assert sum(band.test_share for band in report.bands) == pytest.approx(1)
    parts = sum(band.precision for band in report.bands)
    assert parts == pytest.approx(report.metrics["precision@3"])
    assert sum(decile.n_labels for decile in report.deciles) == 5
    assert [decile.most for decile in report.deciles] == [6, 4, 2, 1, 1]


def test_without_training_labels_there_is_no_propensity():
    report = um.evaluate(TOP, TEST, ks=[3])
    assert "PSP@3" not in report.metrics
    assert (report.bands, report.deciles, report.n_unseen_labels) == ([], [], None)
    given = um.evaluate(TOP, TEST, ks=[3], propensity=np.full(6, 0.5))
    assert 0 < given.metrics["PSP@3"] <= 1


def test_a_narrow_terminal_cuts_no_heading(report):
    console = Console(file=io.StringIO(), width=66)
    console.print(render(report))
    shown = console.file.getvalue()
    assert "recall@3," in shown
    assert "…" not in shown


def test_report_prints_as_a_table(report):
    text = str(report)
    assert (
        "5 samples, 6 labels; samples without labels: 1; test labels unseen in training: 1" in text
    )
    assert "│ precision       │ 60.00 │ 40.00 │" in text
    assert "torso" in text
    assert max(map(len, text.splitlines())) <= 96
    assert "<p>5 samples" in report._repr_html_()
    assert "precision@1=0.6000" in repr(report)


def test_report_survives_json(report):
    read = json.loads(json.dumps(report.to_dict()))
    assert read["metrics"]["precision@1"] == 0.6
    assert read["bands"][0]["name"] == "head"


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_picture(report, suffix, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("ps")
    report.plot(tmp_path / f"report.{suffix}")
    assert (tmp_path / f"report.{suffix}").stat().st_size > 2000
    assert matplotlib.get_backend() == "ps"  # as the user chose


def test_picture_needs_a_known_suffix(report, tmp_path):
    with pytest.raises(ParameterError, match="png"):
        report.plot(tmp_path / "report.docx")


@pytest.mark.parametrize("Y", [csr_array((0, 3)), csr_array((2, 3))])
def test_nothing_to_measure_is_zero_everywhere(Y):
    top = um.TopK(np.full((Y.shape[0], 5), -1), np.full((Y.shape[0], 5), -np.inf))
    report = um.evaluate(top, Y, Y)
    assert set(report.metrics.values()) == {0}
    assert "0.00" in str(report)


def test_evaluate_refuses_what_does_not_fit():
    with pytest.raises(LabelsError, match="evaluate takes"):
        um.evaluate(TEST, TOP)
    with pytest.raises(ParameterError, match="predict with k=5"):
        um.evaluate(TOP, TEST)
    with pytest.raises(LabelsShapeError, match="Y_train has 3 columns"):
        um.evaluate(TOP, csr_array((5, 4)), csr_array((5, 3)), ks=[1])


NAMES = ["a", "b", "c", "d", "e", "[red]f"]


def test_names_bring_confusions_and_labels():
    report = um.evaluate(TOP, TEST, TRAIN, ks=(1, 3), label_names=NAMES)
    pairs = [(pair.given, pair.missed) for pair in report.confused]
    assert pairs == [("a", "c"), ("a", "e")]
    assert [report.labels[i].label for i in range(6)] == NAMES
    assert report.labels[5].n_train == 0
    assert "most confused: a instead of c (1x); a instead of e (1x)" in str(report)


def test_probabilities_are_held_against_all_answers():
    report = um.evaluate(TOP, TEST, ks=[1], probabilities=True)
    assert sum(group.count for group in report.reliability.bins) == 14
    assert [at.threshold for at in report.thresholds] == [0.5, 0.7, 0.9]
    assert report.thresholds[2].precision == 0.6
    assert "from 0.9 upwards 60.0 % right, 1 labels per sample" in str(report)
    with pytest.raises(ParameterError, match="not probabilities"):
        um.evaluate(um.TopK(TOP.labels, 7 * TOP.scores), TEST, ks=[1], probabilities=True)


def test_groups_add_up_to_psp(report):
    assert sum(band.psp for band in report.bands) == pytest.approx(report.metrics["PSP@3"])


def test_everything_survives_json():
    example = um.report.Example("text", ["a"], [("a", np.float32(0.5))], [("text", 1.0)])
    report = um.evaluate(
        TOP,
        TEST,
        TRAIN,
        ks=(1, 3),
        label_names=NAMES,
        probabilities=True,
        examples=[example],
        title="t",
        facts={"size": np.int64(3)},
    )
    read = json.loads(json.dumps(report.to_dict()))
    assert read["labels"]["names"] == NAMES
    assert len(read["labels"]["f1"]) == 6
    assert len(read["reliability"]["bins"]) == 10
    assert read["confused"][0] == {"given": "a", "missed": "c", "count": 1, "share": 1.0}
    assert read["examples"][0]["answered"] == [["a", 0.5]]
    assert (read["title"], read["facts"], read["ks"]) == ("t", {"size": 3}, [1, 3])


def test_picture_shows_probabilities(tmp_path):
    pytest.importorskip("matplotlib")
    um.evaluate(TOP, TEST, TRAIN, ks=[1], probabilities=True).plot(tmp_path / "report.svg")
    plain = um.evaluate(TOP, TEST, TRAIN, ks=[1])
    plain.plot(tmp_path / "plain.svg")
    assert (tmp_path / "report.svg").stat().st_size > (tmp_path / "plain.svg").stat().st_size


def test_every_label_needs_a_name():
    with pytest.raises(LabelsShapeError, match="3 names for 6 labels"):
        um.evaluate(TOP, TEST, TRAIN, ks=[1], label_names=NAMES[:3])
