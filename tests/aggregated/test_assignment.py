"""If these fail, labels go to samples that do not deserve them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.aggregated import assign_labels
from umpteen.aggregated.assignment import handed_out
from umpteen.aggregated.problem import Problem

from . import literal


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("iterations", [0, 1, 5, 20])
@pytest.mark.parametrize("share", ["one", "count"])
def test_equals_the_literal_loop(iterations, center, share):
    n_settled = 0
    for seed in range(40):
        problem = literal.random_problem(seed, signed=seed % 2 > 0, overlap=seed % 3 > 0)
        vectors = literal.embeddings(problem, iterations, 0.1, center)
        scores = literal.similarities(problem, vectors, center)
        if not literal.is_settled(problem, scores, share):
            continue
        n_settled += 1
        found = assign_labels(
            *problem.sparse, iterations=iterations, center=center, samples_per_label=share
        )
        np.testing.assert_array_equal(found.toarray(), literal.handed_out(problem, scores, share))
    assert n_settled >= 15


def test_equally_close_samples_stand_by_their_number():
    X = np.array([[0.6, 0.8], [1, 0], [1, 0], [1, 0], [0, 1]])
    groups = [[4, 2, 1, 3], [0]]
    found = assign_labels(X, groups, [[0, 0], []], samples_per_label="one")
    assert found.indices.tolist() == [0]
    assert np.flatnonzero(found.toarray()).tolist() == [1]
    twice = assign_labels(X, groups, [[0, 0], []], samples_per_label="count")
    assert np.flatnonzero(twice.toarray()).tolist() == [1, 2]


def test_samples_without_features_are_the_last_to_be_given_a_label():
    X = np.array([[0, 0], [1, 0], [0, 0], [1, 0.1]])
    found = assign_labels(X, [0, 0, 1, 1], [[0], [0]])
    assert np.flatnonzero(found.toarray()).tolist() == [1, 3]


def test_nothing_but_empty_samples_gives_the_first_of_each_group():
    found = assign_labels(np.zeros((4, 3)), [0, 0, 1, 1], [[0], [0, 1]], random_state=0)
    assert found.toarray().tolist() == [[1, 0], [0, 0], [1, 1], [0, 0]]


@pytest.mark.parametrize("share", ["one", "count", "estimate"])
@pytest.mark.parametrize("center", [False, True])
def test_groups_of_one_give_the_labels_back(share, center):
    rng = np.random.default_rng(0)
    X, Y = rng.random((50, 8)), csr_matrix(rng.random((50, 6)) < 0.3)
    found = assign_labels(X, np.arange(50), Y, samples_per_label=share, center=center)
    assert (found != Y.astype(np.float32)).nnz == 0
    assert found.dtype == np.float32
    assert found.has_canonical_format


def figure_1(n_labels=2):
    """Prototypes that add up to nothing, one of each in every group, in any order."""
    angles = 2 * np.pi * np.arange(n_labels) / n_labels + 0.3
    prototypes = np.column_stack([np.cos(angles), np.sin(angles)])
    order = [np.random.default_rng(j).permutation(n_labels) for j in range(3)]
    X = np.concatenate([prototypes[own] for own in order])
    groups = np.repeat(np.arange(3), n_labels)
    return X, groups, [list(range(n_labels))] * 3, np.concatenate(order)


def is_solved(Y, prototype):
    """Whether labels and prototypes are one to one."""
    pairs = {(kind, *labels.indices.tolist()) for kind, labels in zip(prototype, Y, strict=True)}
    labels = {label for _, *labels in pairs for label in labels}
    return len(pairs) == len(labels) == len(set(prototype)) and all(len(p) == 2 for p in pairs)


@pytest.mark.parametrize("n_labels", [2, 3, 4, 5])
@pytest.mark.parametrize("center", [False, True])
def test_the_example_of_figure_1_is_solved_up_to_order(n_labels, center):
    """As printed, the algorithm divides zero by zero here, or gives both labels to one sample."""
    X, groups, labels, prototype = figure_1(n_labels)
    answers = set()
    for seed in range(50):
        Y = assign_labels(X, groups, labels, center=center, random_state=seed)
        assert is_solved(Y, prototype), seed
        answers.add(tuple(Y.indices))
    assert len(answers) > 1  # the seed decides which label is which


def random_scores(problem, rng, n_values):
    """Scores with ties, for every label of each sample's groups."""
    pairs = problem.candidates.copy()
    pairs.data = rng.integers(0, n_values, pairs.nnz).astype(np.float32)
    return pairs


small_problems = st.builds(
    literal.random_problem,
    st.integers(0, 2**32 - 1),
    overlap=st.booleans(),
    n=st.integers(4, 25),
    d=st.just(3),
    n_groups=st.integers(3, 8),
    n_labels=st.integers(3, 6),
)


@given(small_problems, st.sampled_from(["one", "count"]), st.integers(1, 6), st.integers(0, 99))
def test_labels_are_handed_out_as_in_the_literal_loop(small, share, n_values, seed):
    problem = Problem.of(*small.sparse)
    scores = random_scores(problem, np.random.default_rng(seed), n_values)
    found = handed_out(problem, scores, share)
    np.testing.assert_array_equal(
        found.toarray(), literal.handed_out(small, scores.toarray(), share)
    )


@given(small_problems, st.sampled_from(["one", "count", "estimate"]), st.integers(0, 99))
def test_each_label_of_a_group_has_as_many_samples_as_promised(small, share, seed):
    problem = Problem.of(*small.sparse)
    scores = random_scores(problem, np.random.default_rng(seed), 4)
    found = handed_out(problem, scores, share).toarray()
    candidates = small.groups.T.astype(int) @ small.counts > 0
    assert not found[~candidates].any()
    per_group = small.groups.astype(int) @ found
    sizes = small.groups.sum(axis=1)[:, None]
    least = np.minimum(small.counts if share == "count" else small.counts > 0, sizes)
    assert (per_group >= least).all()
    is_partition = (small.groups.sum(axis=0) == 1).all()
    if is_partition and share != "estimate":
        np.testing.assert_array_equal(per_group, least)


def test_estimated_numbers_are_about_right():
    """Where counts are not known, frequent labels still get about as many samples as they have."""
    rng = np.random.default_rng(0)
    rates = np.array([0.3, 0.1, 0.03, 0.01])
    true = rng.random((4000, 4)) < rates
    groups = um.data.group_randomly(4000, 8, random_state=0)
    present = um.data.aggregate(true, groups, merge="set")
    problem = Problem.of(rng.random((4000, 3)), groups, present)
    scores = problem.candidates.copy()
    scores.data = rng.random(scores.nnz).astype(np.float32)
    n_given = np.asarray(handed_out(problem, scores, "estimate").sum(axis=0)).ravel()
    np.testing.assert_allclose(n_given, true.sum(axis=0), rtol=0.1)
    n_groups = np.asarray(present.sum(axis=0)).ravel()
    assert n_groups[0] < 0.5 * true[:, 0].sum()  # one of each group would be far too few


def test_groups_of_any_sizes_give_the_share_of_samples():
    """With one mean size, 2,300 samples would be taken for 700."""
    rng = np.random.default_rng(0)
    true = rng.random((12_000, 3)) < [0.2, 0.05, 0.01]
    sizes = rng.permutation(np.repeat([2, 30], [1500, 300]))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    present = um.data.aggregate(csr_matrix(true), groups, merge="set")
    problem = Problem.of(np.ones((12_000, 1)), groups, present)
    np.testing.assert_allclose(problem.probabilities, true.mean(axis=0), rtol=0.1)
    for label, p in enumerate(problem.probabilities):
        expected = sum(1 - (1 - p) ** int(size) for size in sizes)
        assert expected == pytest.approx(present[:, label].sum(), rel=1e-6)


def test_a_label_of_all_groups_is_not_taken_for_one_of_all_samples():
    problem = Problem.of(np.ones((40, 1)), np.arange(40) // 4, [[0]] * 10)
    assert 1 - (1 - problem.probabilities[0]) ** 4 == pytest.approx(0.95)


def test_estimated_labels_go_to_the_best_of_the_rest():
    """Ten groups of three, label in nine: p = 1 - 0.1^(1/3), 16 samples; the best 7 of the rest."""
    problem = Problem.of(np.ones((30, 1)), np.arange(30) // 3, [[0]] * 9 + [[]])
    scores = problem.candidates.copy()
    scores.data = np.arange(27, dtype=np.float32)
    given = handed_out(problem, scores, "estimate")
    first = [3 * group + 2 for group in range(9)]
    rest = [sample for sample in reversed(range(27)) if sample not in first][:7]
    assert np.flatnonzero(given.toarray()).tolist() == sorted(first + rest)
    scores.data[:] = 1  # all alike: the lowest numbers
    given = handed_out(problem, scores, "estimate")
    first = [3 * group for group in range(9)]
    rest = [sample for sample in range(27) if sample not in first][:7]
    assert np.flatnonzero(given.toarray()).tolist() == sorted(first + rest)


def test_ignore_groups_gives_all_labels_of_all_groups():
    for seed in range(5):
        small = literal.random_problem(seed)
        found = um.ignore_groups(*small.sparse)
        np.testing.assert_array_equal(
            found.toarray(), small.groups.T.astype(int) @ small.counts > 0
        )
        assert set(found.data) == {1}
