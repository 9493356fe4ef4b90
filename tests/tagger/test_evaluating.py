"""The number in the report must be the number that the metrics give."""

import warnings

import numpy as np
import pytest

import umpteen as um
from umpteen.errors import LabelsShapeError, ParameterError
from umpteen.tagger import Tagger

from .made_up import make_up, name_of

TEXTS, LABELS = make_up(400)
TEST, RELEVANT = make_up(120, seed=1)


def small_tree():
    return um.LabelTree(max_leaf=6, branching=4)


@pytest.fixture(scope="module")
def tagger():
    return Tagger(small_tree(), keep_texts=True).fit(TEXTS, LABELS)


@pytest.mark.parametrize("replay", [50_000, 30])
@pytest.mark.parametrize("ks", [(1, 3, 5), (2,), (1, 24)])
def test_it_is_the_evaluation_of_the_answers(replay, ks):
    """Also the metrics that need all training labels, whatever was kept of them."""
    tagger = Tagger(small_tree(), replay=replay).fit(TEXTS, LABELS)
    names = tagger.label_names_
    top = tagger.predict_topk(TEST, 24)
    expected = um.evaluate(top, names.matrix(RELEVANT), names.matrix(LABELS), ks=ks)
    found = tagger.evaluate(TEST, RELEVANT, ks=ks)
    assert found.metrics == pytest.approx(expected.metrics)
    assert "PSP@1" in found.metrics or 1 not in ks
    assert found.bands == expected.bands
    assert found.n_labels == 24
    if 1 in ks:
        assert found.metrics["precision@1"] * 116 / 120 == pytest.approx(
            tagger.score(TEST, RELEVANT), abs=0.05
        )


def test_labels_that_the_tagger_does_not_know_are_missed(tagger):
    stranger = [[*own, "stranger"] for own in RELEVANT]
    plain, found = tagger.evaluate(TEST, RELEVANT), tagger.evaluate(TEST, stranger)
    assert found.n_labels == 25
    assert found.n_unseen_labels == 1
    assert found.metrics["recall@5"] < plain.metrics["recall@5"]
    names = tagger.label_names_.with_new(["stranger"])
    hits = tagger.predict_topk(TEST, 5)
    relevant = names.matrix(stranger).toarray()
    recall = [
        sum(relevant[row, label] for label in labels if label >= 0) / relevant[row].sum()
        for row, labels in enumerate(hits.labels)
    ]
    assert found.metrics["recall@5"] == pytest.approx(np.mean(recall))


def test_a_removed_label_is_missed_like_a_stranger():
    tagger = Tagger(small_tree()).fit(TEXTS, LABELS)
    before = tagger.evaluate(TEST, RELEVANT).metrics["recall@5"]
    tagger.remove_labels(name_of(0))
    after = tagger.evaluate(TEST, RELEVANT)
    assert after.metrics["recall@5"] < before
    assert after.labels is not None


def test_the_report_shows_what_a_reader_wants_to_see(tagger):
    report = tagger.evaluate(TEST, RELEVANT, title="Made up", n_examples=4)
    assert report.title == "Made up"
    assert report.facts == {
        "Classifier": "LabelTree", "Training texts": 400, "Labels": 24,
        "Features": tagger.vectorizer_.n_features_used,
    }  # fmt: skip
    assert report.reliability.expected_calibration_error < 0.1
    assert sum(group.count for group in report.reliability.bins) == 120 * 20
    assert len(report.examples) == 4
    for example in report.examples:
        row = TEST.index(example.text)
        assert example.expected == RELEVANT[row]
        assert example.answered == tagger.predict(example.text, k=5)
        assert example.words == tagger.explain(example.text, example.answered[0][0]).words[:8]
    assert {pair.given for pair in report.confused} <= set(tagger.label_names_.names)
    assert len(report.labels) == 24
    assert "Made up" in report.to_html()


def test_scores_that_are_no_probabilities_are_not_judged_as_such():
    report = Tagger(small_tree(), calibrate=False).fit(TEXTS, LABELS).evaluate(TEST, RELEVANT)
    assert report.reliability is None


def test_texts_without_answers_are_part_of_it(tagger):
    texts, labels = ["unheard of", "", *TEST[:3]], [["label00"], [], *RELEVANT[:3]]
    report = tagger.evaluate(texts, labels, n_examples=5)
    empty = [example for example in report.examples if not example.answered]
    assert {example.text for example in empty} == {"unheard of", ""}
    assert report.n_samples == 5
    assert tagger.evaluate([], []).n_samples == 0
    assert tagger.evaluate(TEST[:2], RELEVANT[:2], n_examples=0).examples == []


def test_newcomers_count_by_their_examples():
    tagger = Tagger(small_tree()).fit(TEXTS, LABELS)
    tagger.add_labels("new", examples=[["common1 common2", "common3 common4"] * 300])
    report = tagger.evaluate(["common1 common2"], [["new"]])
    assert report.metrics["precision@1"] == 1
    assert tagger.label_counts_[-1] == 2
    assert tagger.n_samples_ == 402


def test_labels_that_are_all_strangers_are_doubted(tagger):
    """Ids in place of names would be a report full of zeros, without a word why."""
    with pytest.warns(UserWarning, match="such as '0', is a label of this tagger, such as 'label"):
        tagger.evaluate(TEST, [[0]] * len(TEST))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tagger.evaluate(TEST, [["stranger"], *RELEVANT[1:]])
        tagger.evaluate(TEST, [[] for _ in TEST])


def test_bad_questions_are_refused(tagger):
    for ks in ((), (0,)):
        with pytest.raises(ParameterError):
            tagger.evaluate(TEST, RELEVANT, ks=ks)
    with pytest.raises(LabelsShapeError):
        tagger.evaluate(TEST, RELEVANT[:-1])
