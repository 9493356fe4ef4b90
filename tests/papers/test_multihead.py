"""If these fail, the page on Multi-Head Encoding compares heads on wrong samples or wrong terms."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array

from papers import prepare
from papers.contents import Table
from papers.multihead import (
    bottleneck,
    decomposition,
    labels,
    runs,
    settings,
    single,
    speed,
    worker,
)
from papers.sets import rarest_label
from umpteen.multihead import LabelCode
from umpteen.neural import FullHead, recipe


def table(seed, n=30, n_labels=12, density=0.2):
    drawn = random_array(
        (n, n_labels), density=density, rng=np.random.default_rng(seed), format="csr"
    )
    return csr_matrix(drawn > 0, dtype=np.float32)


def small_task(n=240, n_labels=8, several=False):
    """A feature for each label; with `several`, samples have two of them."""
    random = np.random.default_rng(0)
    classes = np.arange(n) % n_labels
    Y = np.eye(n_labels, dtype=np.float32)[classes]
    if several:
        Y[np.arange(n), (classes + random.integers(1, n_labels, n)) % n_labels] = 1
    X = csr_matrix(Y)
    answers = csr_matrix(Y) if several else classes
    return runs.Task("small", X[:200], answers[:200], X[200:], answers[200:])


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_the_class_of_a_sample_is_its_rarest_label(seed, least):
    Y = table(seed)
    counts = Y.getnnz(axis=0)
    for row, found in enumerate(rarest_label(Y, counts, least).tolist()):
        mine = [label for label in Y[row].indices.tolist() if counts[label] >= least]
        assert found == min(mine, key=lambda label: (counts[label], label), default=-1)


def test_classes_are_learnt_from_and_tested_on_with_the_same_numbers(monkeypatch):
    Y, Y_test = table(0, n=60), table(1, n=40)
    task = runs.Task("made up", csr_matrix(np.eye(60)), Y, csr_matrix(np.eye(40)), Y_test)
    monkeypatch.setattr(runs, "texts_task", lambda name, quick: task)
    runs.classes_task.cache_clear()
    found = runs.classes_task("made up", True)
    runs.classes_task.cache_clear()
    counts = Y.getnnz(axis=0)
    train, test = (rarest_label(labels, counts, 3) for labels in (Y, Y_test))
    known = sorted(set(train.tolist()) - {-1})
    np.testing.assert_array_equal(np.unique(found.Y), np.arange(len(known)))
    rows = np.asarray(found.X.argmax(axis=1)).ravel()
    assert [known[y] for y in found.Y] == train[rows].tolist()
    test_rows = np.asarray(found.X_test.argmax(axis=1)).ravel()
    assert [known[y] for y in found.Y_test] == test[test_rows].tolist()
    assert set(test_rows.tolist()) == {row for row, y in enumerate(test.tolist()) if y in known}


@pytest.mark.parametrize("several", [False, True])
def test_scores_are_of_the_test_part_and_repeat(several):
    task = small_task(several=several)
    training = settings.Training(8, batch_size=16, learning_rate=0.03, dim=32)
    models = {"full": lambda seed: training.network(recipe(FullHead), seed)}
    found = runs.repeated(task, models, 2)["full"]
    assert found.shape == ((2, 3) if several else (2, 1))
    assert (found[:, 0] > 95).all()
    np.testing.assert_array_equal(runs.repeated(task, models, 1)["full"], found[:1])


def test_distances_are_from_the_full_layer_of_the_same_seed():
    found = {"full": np.array([[70.0], [60.0]]), "MHP": np.array([[69.0], [59.0]])}
    shown = single.against_full("", found).rows[1]
    assert (shown[0], shown[2].ours, shown[2].spread) == ("MHP", -1.0, 0.0)
    assert shown[2].paper == pytest.approx(-2.86)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_trimming_takes_the_rarest_labels(seed, rate):
    Y = table(seed, density=0.4)
    trimmed = labels.without_tail(Y, rate)
    assert trimmed.shape == Y.shape
    counts, left = Y.getnnz(axis=0), trimmed.getnnz(axis=0)
    gone = np.sort(counts)[: int(rate * len(counts))]
    assert left.sum() == counts.sum() - gone.sum()
    kept = left > 0
    np.testing.assert_array_equal(left[kept], counts[kept])
    assert (trimmed.data == 1).all()


def test_centroids_are_of_each_label():
    task = small_task()
    found = decomposition.centroids(task)
    np.testing.assert_allclose(found.toarray(), np.eye(8), atol=1e-6)
    assert (decomposition.centroids(small_task(several=True)).diagonal() > 0).all()


def test_all_cases_of_lengths_have_a_code_for_each_class():
    cases = decomposition._cases(3_000)
    assert len(cases) == 8
    assert all(isinstance(case[1], LabelCode) for case in cases.values())
    assert [case[1].n_heads for case in cases.values()] == [2, 2, 3, 4, 2, 2, 2, 3]


def test_costs_of_each_head(monkeypatch):
    monkeypatch.setattr(worker, "WORDS", 500)
    parameters, weights = {}, {}
    for name, alone in itertools.product(worker.HEADS, [True, False]):
        found = worker.measure(name, alone, n_labels=200, steps=1)
        assert min(found["step"], found["answer"]) > 0
        parameters[name], weights[name] = found["parameters"], found["weights"]
    assert parameters["full"] == 200 * 513
    assert parameters["MHP"] == (15 + 14) * 513
    assert parameters["MHS"] == 200 * 512
    n_groups = LabelCode.descending(200).n_groups[0]
    assert weights == {
        "full": 512 * 200,
        "MHP": 512 * (15 + 14),
        "MHC": 512 * n_groups + 512 * 256 + 200 * 256,
        "MHS": 512 * 200,
    }


def test_a_process_says_what_it_measured_or_why_not(monkeypatch):
    assert speed.in_own_process("MHP", 100, 1, True)["parameters"] == 20 * 513
    failed = SimpleNamespace(returncode=1, stderr="KeyError: 'nothing'")
    monkeypatch.setattr(speed.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(RuntimeError, match="KeyError"):
        speed.in_own_process("nothing", 100, 1, True)
    failed.stderr = "can't allocate memory"
    assert speed.in_own_process("full", 100, 1, True) is None
    assert speed._table({(name, 9): None for name in speed.NAMES}, 9).rows[0][1:] == [None] * 8


def test_threads_are_compared_with_one(monkeypatch):
    monkeypatch.setattr(speed, "n_threads", lambda n_jobs: 4)
    monkeypatch.setattr(
        speed, "in_own_process", lambda *given: {"step": 0.4 if given[-1] == 1 else 0.1}
    )
    (found,) = speed._threads(1_000, 2)
    assert found.columns == ["head", "1 thread", "4 threads", "times as fast"]
    assert [cell.ours for cell in found.rows[0][1:]] == pytest.approx([400, 100, 4])


def test_a_table_of_costs_has_a_cell_for_each_column():
    costs = dict.fromkeys(("parameters", "weights", "step", "answer"), 1)
    found = {(name, 9): {**costs, "step_peak": 1, "answer_peak": 1} for name in speed.NAMES}
    shown = speed._table(found, 9)
    assert {len(row) for row in shown.rows} == {len(shown.columns)}


def test_one_hidden_unit_needs_the_right_loss():
    """Theorem 3 in small: 8 classes by one number and a bias."""
    softmax = bottleneck.trained(8, 1, "softmax", True, 1_500, 2, rate=0.1)
    frobenius = bottleneck.trained(8, 1, "frobenius", True, 1_500, 2, rate=0.1)
    assert (softmax.accuracy[-1] == 100).all()
    assert (frobenius.accuracy[-1] <= 50).all()
    assert (softmax.rank[-1] > frobenius.rank[-1]).all()
    assert len(softmax.steps) == len(softmax.accuracy) == len(softmax.rank)


def test_seeds_side_by_side_are_trained_as_if_alone():
    alone, both = (bottleneck.trained(6, 1, "softmax", True, 50, n, rate=0.1) for n in (1, 2))
    assert [v[0] for v in alone.accuracy] == [v[0] for v in both.accuracy]


def test_the_page_has_all_chapters():
    quick, full = (prepare("multihead", quick=quick).sections for quick in (True, False))
    titles = " ".join(section.title for section in full)
    for name in ("Figure 7", "Table 7", "Table 9", "Table 10", "Tables 2 and 3", "Theorem 3"):
        assert name in titles
    assert 0 < len(quick) <= len(full)


def test_a_section_of_it(monkeypatch):
    """Random against clustered labels, on samples that take no time."""
    monkeypatch.setattr(decomposition, "classes_task", lambda name, quick: small_task())
    monkeypatch.setattr(decomposition, "available", lambda names: names)
    monkeypatch.setattr(decomposition, "texts_task", lambda name, quick: small_task(several=True))
    training = settings.Training(2, batch_size=32, dim=16)
    parts = list(decomposition._orders(True, training, training)) + list(
        decomposition._lengths(True, training)
    )
    tables = [part for part in parts if isinstance(part, Table)]
    assert [len(table.rows) for table in tables] == [8, 8]
    assert all(len(row) == len(table.columns) for table in tables for row in table.rows)
