"""If these fail, a label that many samples of a group share goes to one of them, or to all."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.aggregated.counting import PairScores, count_by_scores, labels_of_others
from umpteen.aggregated.problem import Problem
from umpteen.aggregated.rounds import has_settled
from umpteen.data import aggregate, group_randomly
from umpteen.kernels.noisy_or import expected_counts

GRID = np.linspace(np.log(1e-4), 0, 64)


def literal_numbers(own, ends, others, n_absent, ridge):
    """The same likelihood, maximised by SciPy; `own` and `others` are logarithms of scores."""

    def softplus(values):
        return np.logaddexp(0, values)

    def totals(slope, bias):
        return np.array([part.sum() for part in np.split(softplus(slope * own + bias), ends[:-1])])

    def loss(curve):
        slope, bias = curve
        absent = n_absent * softplus(slope * others + bias).mean()
        present = -np.log(-np.expm1(-totals(slope, bias))).sum()
        return present + absent + 0.5 * ridge * (slope - 1) ** 2

    found = minimize(loss, [1.0, 0.0], bounds=[(0, None), (None, None)], method="L-BFGS-B")
    slope, bias = found.x
    p = 1 / (1 + np.exp(-slope * own - bias))
    likely = np.array([part.sum() for part in np.split(p, ends[:-1])])
    return likely / -np.expm1(-totals(slope, bias))


@pytest.mark.parametrize("seed", range(8))
def test_numbers_equal_those_of_the_literal_likelihood(seed):
    rng = np.random.default_rng(seed)
    n, sizes = 300, rng.integers(2, 12, 12)
    ends = np.cumsum(sizes)
    own = rng.integers(0, 64, ends[-1]).astype(np.uint8)
    others = np.minimum(rng.integers(0, 64, 90), rng.integers(0, 64, 90)).astype(np.uint8)
    found = np.zeros(len(sizes))
    expected_counts(
        np.array([0, len(sizes)]), np.arange(len(sizes)), np.r_[0, ends], np.arange(ends[-1]),
        np.array([0, ends[-1]]), np.arange(ends[-1]), own, np.array([0, 90]), others, GRID, 0.1,
        np.zeros(n, np.uint8), found,
    )  # fmt: skip
    wanted = literal_numbers(GRID[own], ends, GRID[others], n - ends[-1], 0.1)
    np.testing.assert_allclose(found, wanted, rtol=0.02)


def problem_of(Y, groups):
    return Problem.of(np.ones((Y.shape[0], 1)), groups, aggregate(csr_matrix(Y), groups, "set"))


def scored(pairs, Y, bad, good=0.9):
    """Scores that tell the truth."""
    found = pairs.copy()
    is_true = np.asarray(Y[found.nonzero()]).ravel() > 0
    found.data = np.where(is_true, good, bad).astype(np.float32)
    return found


def counted(Y, groups, bad=0.01):
    problem = problem_of(Y, groups)
    others = labels_of_others(problem, 0)
    scores = PairScores(scored(problem.everything, Y, bad), scored(others, Y, bad))
    return problem, count_by_scores(problem, scores)


def test_labels_that_whole_groups_share_are_counted_in_whole():
    """If samples were independent, less than 1 of 10 would have it; scores say most."""
    groups = csr_matrix(np.kron(np.eye(40), np.ones((1, 10))))
    Y = np.kron(np.eye(4), np.ones((100, 1)))  # ten groups of each label
    problem, numbers = counted(Y, groups, bad=1e-4)
    assert (numbers >= 5).all()
    assert problem.probabilities.max() * 10 < 1


def test_labels_at_random_are_counted_as_they_are():
    rng = np.random.default_rng(0)
    Y = (rng.random((2000, 12)) < 0.15).astype(float)
    groups = group_randomly(2000, 10, 0)
    problem, numbers = counted(Y, groups)
    true = np.asarray((groups @ Y)[problem.group_labels.nonzero()]).ravel()
    assert np.abs(numbers - true).mean() < 0.1


def test_a_label_of_all_groups_is_counted_within_its_groups():
    """There is no negative sample at all; nothing breaks, and not everybody gets it."""
    groups = csr_matrix(np.kron(np.eye(30), np.ones((1, 6))))
    Y = np.zeros((180, 2))
    Y[::6, 0] = 1
    Y[:90, 1] = 1
    problem, numbers = counted(Y, groups)
    own = numbers[problem.group_labels.indices == 0]
    assert (own >= 1).all()
    assert own.mean() < 3


def test_labels_of_others_are_not_those_of_the_own_groups():
    Y = np.kron(np.eye(4), np.ones((25, 1)))
    groups = group_randomly(100, 4, 0)
    problem = problem_of(Y, groups)
    others = labels_of_others(problem, 3)
    assert others.nnz > 0
    assert (others.data == 1).all()
    assert others.multiply(problem.everything).nnz == 0
    assert (others != labels_of_others(problem, 3)).nnz == 0


@pytest.mark.parametrize(
    ("before", "now", "settled"),
    [
        (None, None, True),
        (None, [1, 2], True),
        ([10, 10], [10, 11], True),
        ([10, 10], [5, 9], False),
    ],
)
def test_numbers_settle(before, now, settled):
    as_array = [None if v is None else np.array(v, np.float32) for v in (before, now)]
    assert has_settled(*as_array) is settled


def test_presence_in_clusters_is_better_than_all_labels_of_the_group():
    """Samples of a cluster share most of its labels; groups have others besides."""
    data = um.data.make_extreme(n_samples=3_000, n_features=600, n_labels=60, random_state=0)
    train, test = data.train, data.test
    groups = um.data.group_by_clusters(train.X, depth=7, random_state=0)
    known = {"groups": groups, "group_labels": aggregate(train.Y, groups, merge="set")}
    model = um.Eagle(verbose=False).fit(train.X, **known)
    baseline = um.LabelTree(verbose=False).fit(train.X, um.ignore_groups(train.X, **known))
    assert model.samples_per_label_ == "estimate"
    assert model.score(test.X, test.Y) > baseline.score(test.X, test.Y) + 0.1
