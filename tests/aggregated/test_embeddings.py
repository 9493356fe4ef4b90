"""If these fail, labels are looked for in the wrong place from the start."""

import time

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from umpteen.aggregated import embeddings as module
from umpteen.aggregated import group_label_embeddings
from umpteen.aggregated.problem import Problem

from . import literal

SEEDS = range(12)
ITERATIONS_AND_STEP = [(0, 0.1), (1, 0.1), (5, 0.1), (20, 0.1), (5, 0.7), (3, 0.0)]


def at_own_features(problem):
    """(n_labels, d): the features that samples of a label's groups have."""
    reached = (problem.counts > 0).T.astype(int) @ problem.groups.astype(int)
    return reached @ (problem.X != 0).astype(int) > 0


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(("iterations", "step"), ITERATIONS_AND_STEP)
@pytest.mark.parametrize("signed", [False, True])
def test_equal_the_literal_loop(iterations, step, center, signed):
    for seed in SEEDS:
        problem = literal.random_problem(seed, signed=signed, overlap=seed % 3 > 0)
        found = group_label_embeddings(
            *problem.sparse, iterations=iterations, step=step, center=center, random_state=0
        )
        wanted = literal.embeddings(problem, iterations, step, center)
        own = at_own_features(problem)
        np.testing.assert_allclose(found.toarray() * own, wanted * own, atol=1e-5)
        if not center:
            np.testing.assert_allclose(found.toarray(), wanted, atol=1e-5)


def test_iterations_matter():
    """The comparison above would not notice a loop that does nothing, if nothing ever moved."""
    problem = literal.random_problem(0)
    start, end = (literal.embeddings(problem, t, 0.1, center=True) for t in (0, 20))
    assert np.abs(start - end).max() > 0.1


def test_equally_close_samples_all_win():
    """Two copies pull twice as hard as the one closest sample of the other group."""
    X = np.array([[1, 0], [1, 0], [0, 1], [0.8, 0.6], [0, 1]])
    start = literal.unit(X.sum(axis=0))  # (0.73, 0.68): 0 and 1 are closest, and 3
    wanted = literal.unit(start + 0.1 * literal.unit(2 * X[0] + X[3]))
    found = group_label_embeddings(X, [0, 0, 0, 1, 1], [[0], [0]], iterations=1)
    np.testing.assert_allclose(found.toarray()[0], wanted, atol=1e-6)


@pytest.mark.parametrize("center", [False, True])
def test_any_form_of_input_gives_the_same(center):
    problem = literal.random_problem(1, overlap=False)
    X, groups, counts = problem.sparse
    wanted = group_label_embeddings(X, groups, counts, center=center)
    lists = [np.repeat(row.indices, row.data.astype(int)).tolist() for row in counts]
    numbers = np.asarray(groups.argmax(axis=0)).ravel()
    for given in (
        (X.toarray(), groups.toarray(), counts.toarray()),
        (X.tocsc(), [row.indices.tolist() for row in groups], lists),
        (X.tocoo(), numbers, counts.tocsc()),
    ):
        found = group_label_embeddings(*given, center=center)
        assert (found != wanted).nnz == 0


@pytest.mark.parametrize("scale", [1e30, 1e-30, 7.0])
@pytest.mark.parametrize("as_given", [np.asarray, csr_matrix])
def test_the_length_of_samples_does_not_matter(scale, as_given):
    """Squares of 1e30 overflow float32, those of 1e-30 vanish."""
    X, groups, counts = literal.random_problem(2)
    lengths = scale * np.random.default_rng(0).uniform(0.5, 2, len(X))
    found = group_label_embeddings(as_given(lengths[:, None] * X), groups, counts)
    wanted = group_label_embeddings(X, groups, counts)
    np.testing.assert_allclose(found.toarray(), wanted.toarray(), atol=1e-5)


@pytest.mark.parametrize("center", [False, True])
def test_chunks_and_threads_change_no_bit(center, monkeypatch):
    problem = literal.random_problem(3, n=80, n_groups=20, n_labels=30)
    wanted = group_label_embeddings(*problem.sparse, center=center, n_jobs=1)
    monkeypatch.setattr(module, "_CHUNK_ENTRIES", 100)
    for n_jobs in (1, 3):
        found = group_label_embeddings(*problem.sparse, center=center, n_jobs=n_jobs)
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(found, part), getattr(wanted, part))


def test_labels_without_samples_have_no_embedding():
    X, groups, counts = np.eye(3), [[0, 1, 2], []], [[0, 2], []]
    found = group_label_embeddings(X, groups, counts)  # label 1: in no group
    assert np.diff(found.indptr).tolist() == [3, 0, 3]
    nothing = group_label_embeddings(0 * X, groups, counts)
    assert not nothing.toarray().any()


def test_samples_that_add_up_to_nothing_start_from_one_of_them():
    """The paper's own example divides zero by zero there."""
    for seed in range(20):
        found = group_label_embeddings(
            [[0.6, 0.8], [-0.6, -0.8]] * 3, [0, 0, 1, 1, 2, 2], [[0, 1]] * 3, random_state=seed
        ).toarray()
        np.testing.assert_allclose(np.abs(found), [[0.6, 0.8]] * 2, atol=1e-6)
        assert found[0] @ found[1] < -0.99


def test_such_starts_are_apart_as_in_the_literal_loop():
    X, groups, counts = literal.random_problem(5, n=40, n_groups=6, n_labels=25)
    problem = Problem.of(X, groups, counts)
    starts, vague = np.full(25, -1), np.arange(25, dtype=np.int32)
    module._start_apart(problem, vague, starts, seed=3)
    begun = [[] for _ in range(6)]
    for label in range(25):
        own = np.flatnonzero(problem.group_labels.toarray()[:, label])
        if len(own) == 0:
            continue
        rng = np.random.default_rng((3, label))
        group = rng.choice(own)
        members = rng.permutation(np.flatnonzero(problem.groups.toarray()[group]))
        units = problem.X.toarray()
        likeness = [max([units[i] @ units[j] for j in begun[group]], default=0) for i in members]
        assert starts[label] == members[np.argmin(likeness)]
        for j in own:
            begun[j].append(starts[label])


def test_many_such_labels_start_in_no_time():
    """Each was compared with all before it: 14 s for 1,000 labels of one group."""
    X = np.array([[1.0, 0], [-1, 0]] * 1000)
    started = time.perf_counter()
    group_label_embeddings(X, np.zeros(2000, int), np.ones((1, 1000)), iterations=0)
    assert time.perf_counter() - started < 8


def test_a_label_of_every_group_stands_against_nothing_of_its_own():
    """All samples with the mean taken off add up to rounding errors, which say nothing."""
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((3000, 5)))
    X[:, 0] += 5
    groups = np.arange(3000) // 3
    found = group_label_embeddings(
        X, groups, [[0]] * 1000, center=True, iterations=0, random_state=0
    ).toarray()[0]
    centred = literal.unit_rows(X, center=True)
    likeness = (centred / np.linalg.norm(centred, axis=1, keepdims=True)) @ found
    assert likeness.max() > 1 - 1e-4  # one sample


def test_winners_that_cancel_out_change_nothing():
    angles = 2 * np.pi * np.arange(3) / 3 + 0.1
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    found = group_label_embeddings(X, [0, 1, 2], [[0], [0], [0]], random_state=0).toarray()[0]
    assert (X @ found).max() == pytest.approx(1, abs=1e-6)


def test_input_stays_as_it_was():
    problem = literal.random_problem(4)
    X, groups, counts = problem.sparse
    before = [part.copy() for m in (X, groups, counts) for part in (m.data, m.indices, m.indptr)]
    group_label_embeddings(X, groups, counts, center=True)
    after = [part for m in (X, groups, counts) for part in (m.data, m.indices, m.indptr)]
    for old, new in zip(before, after, strict=True):
        np.testing.assert_array_equal(old, new)
