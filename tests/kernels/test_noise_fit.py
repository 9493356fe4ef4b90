"""If a node is not fitted to its optimum, negatives are too easy and training is slow."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize
from scipy.special import log_expit

from umpteen.kernels.noise_fit import (
    ClassSamples,
    Effort,
    class_sums,
    fit_node,
    fit_nodes,
    gains,
    node_rows,
    split,
    start_split,
)
from umpteen.kernels.noise_newton import ascend, evaluate, solve
from umpteen.kernels.noise_start import dominant

DIM, ALL = 4, 10**9


def made_up(n_classes, seed, dim=DIM, spread=1.0, most=12):
    """Samples of classes of different sizes, some empty."""
    random = np.random.default_rng(seed)
    sizes = random.integers(0, most, n_classes)
    centres = spread * random.standard_normal((n_classes, dim))
    rows = np.repeat(centres, sizes, axis=0) + random.standard_normal((sizes.sum(), dim))
    rows = rows.astype(np.float32)
    start = np.concatenate([[0], np.cumsum(sizes)])
    return ClassSamples(rows, start, class_sums(rows, start))


def signs(samples, right):
    return np.repeat(np.where(right, 1.0, -1.0), np.diff(samples.start))


def literal_objective(theta, samples, right, regularizer):
    """Eq. 8 and the quadratic regulariser."""
    scores = samples.rows.astype(np.float64) @ theta[:-1] + theta[-1]
    return log_expit(signs(samples, right) * scores).sum() - regularizer * (theta**2).sum()


def literal_optimum(samples, right, regularizer):
    def loss(theta):
        return -literal_objective(theta, samples, right, regularizer)

    def slope(theta):
        rows = np.hstack([samples.rows, np.ones((len(samples.rows), 1))])
        sign = signs(samples, right)
        residual = sign * np.exp(log_expit(-sign * (rows @ theta)))
        return 2 * regularizer * theta - residual @ rows

    start = np.zeros(samples.rows.shape[1] + 1)
    return minimize(loss, start, jac=slope, method="BFGS", options={"gtol": 1e-9}).x


def half_of(n, seed):
    right = np.zeros(n, bool)
    right[np.random.default_rng(seed).choice(n, n // 2, replace=False)] = True
    return right


def alternated(samples, regularizer, max_rounds, tolerance=1e-12, most_rows=ALL):
    classes = np.arange(len(samples.start) - 1)
    right, theta = start_split(samples, classes), np.zeros(samples.rows.shape[1] + 1)
    history, effort = np.empty(2 * max_rounds + 1), Effort(max_rounds, tolerance, most_rows)
    n = fit_node(samples, classes, right, theta, regularizer, effort, history)
    return right, theta, history[:n]


def half_differences(samples, right):
    """Half the sum of (z, 1) over samples that go right, less that over the others."""
    return 0.5 * signs(samples, right) @ with_ones(samples.rows)


def with_ones(rows):
    return np.hstack([rows, np.ones((len(rows), 1))]).astype(np.float64)


def ascended(samples, right, theta, regularizer, tolerance=1e-12):
    """Ascend from `theta`, in place; the objective and its gradient at the end."""
    target, slope = half_differences(samples, right), np.empty(len(theta))
    hessian = np.empty((len(theta), len(theta)))
    value = evaluate(samples.rows, 1.0, theta, regularizer, slope, hessian)
    value = ascend(samples.rows, 1.0, target, theta, regularizer, tolerance, value, slope, hessian)
    return value + target @ theta, slope + target


@pytest.mark.parametrize("weight", [1.0, 2.5])
@pytest.mark.parametrize("seed", range(5))
def test_gradient_and_hessian_are_those_of_the_objective(seed, weight):
    samples, right = made_up(6, seed, most=200), half_of(6, seed)
    theta, target = (
        np.random.default_rng(seed).standard_normal(DIM + 1),
        half_differences(samples, right),
    )
    slope, hessian = np.empty(DIM + 1), np.empty((DIM + 1, DIM + 1))
    value = evaluate(samples.rows, weight, theta, 0.3, slope, hessian)
    penalty = 0.3 * (theta**2).sum()
    likelihood = literal_objective(theta, samples, right, 0.0)
    assert value + penalty == pytest.approx(weight * (likelihood - target @ theta), rel=1e-12)
    rows, goes_right = with_ones(samples.rows), signs(samples, right) > 0
    p = 1 / (1 + np.exp(-rows @ theta))
    expected = weight * (rows.T @ (goes_right - p) - target) - 0.6 * theta
    np.testing.assert_allclose(slope, expected, atol=1e-9)
    expected = weight * (rows * (p * (1 - p))[:, None]).T @ rows + 0.6 * np.eye(DIM + 1)
    np.testing.assert_allclose(np.triu(hessian), np.triu(expected), atol=1e-9)


@pytest.mark.parametrize("regularizer", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_newton_finds_what_a_general_optimiser_finds(seed, regularizer):
    samples, right = made_up(9, seed), half_of(9, seed)
    theta = np.zeros(DIM + 1)
    objective, _ = ascended(samples, right, theta, regularizer)
    expected = literal_optimum(samples, right, regularizer)
    np.testing.assert_allclose(theta, expected, rtol=1e-5, atol=1e-6)
    literal = literal_objective(theta, samples, right, regularizer)
    assert objective == pytest.approx(literal, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_newton_climbs_where_classes_are_apart_and_features_large(scale):
    """A full Newton step overshoots there; without halving it would never come back."""
    rows = np.array([[-1, 0.5], [-2, 0], [1, 0.1], [3, 0]], np.float32) * np.float32(scale)
    start = np.array([0, 2, 4])
    samples = ClassSamples(rows, start, class_sums(rows, start))
    theta, right = np.array([-5.0, 3.0, 40.0]), np.array([False, True])
    objective, gradient = ascended(samples, right, theta, 1e-4)
    assert np.isfinite(theta).all()
    assert objective == pytest.approx(literal_objective(theta, samples, right, 1e-4), rel=1e-9)
    slope, hessian = np.empty(3), np.empty((3, 3))
    evaluate(rows, 1.0, theta, 1e-4, slope, hessian)
    assert gradient @ solve(hessian, gradient, np.empty((3, 3))) < 1e-8


def test_solving_is_solving():
    random = np.random.default_rng(0)
    for n in (1, 2, 17):
        root = random.standard_normal((n, n))
        matrix, vector = root @ root.T + np.eye(n), random.standard_normal(n)
        found = solve(np.triu(matrix), vector, np.empty((n, n)))
        np.testing.assert_allclose(found, np.linalg.solve(matrix, vector), rtol=1e-9)


def test_a_gain_is_the_difference_that_a_class_makes():
    """Eq. 9 without its algebra: the objective with it on the right less that on the left."""
    samples, theta = made_up(7, seed=1), np.array([0.5, -1.0, 2.0, 0.1, -0.7])
    found = gains(samples, np.arange(7), theta)
    for label in range(7):
        to_right, to_left = half_of(7, seed=3), half_of(7, seed=3)
        to_right[label], to_left[label] = True, False
        difference = literal_objective(theta, samples, to_right, 0.1) - literal_objective(
            theta, samples, to_left, 0.1
        )
        assert found[label] == pytest.approx(difference, abs=1e-9)


@given(
    hnp.arrays(np.float64, st.integers(2, 9), elements=st.floats(-100, 100, width=16)),
    st.integers(0, 99),
)
def test_no_other_halves_are_better(gain_of, seed):
    n = len(gain_of)
    right = half_of(n, seed)
    before = gain_of[right].sum()
    improvement = split(gain_of, right)
    sizes = {n // 2, n - n // 2}
    best = max(gain_of[list(half)].sum() for size in sizes for half in combinations(range(n), size))
    assert right.sum() in sizes
    assert gain_of[right].sum() == pytest.approx(best)
    assert improvement == pytest.approx(best - before, abs=1e-9)


def test_equal_gains_move_nothing():
    right = np.array([True, False, True, False])
    assert split(np.zeros(4), right) == 0
    assert right.tolist() == [True, False, True, False]


@pytest.mark.parametrize("regularizer", [0.1, 3.0])
@pytest.mark.parametrize("seed", range(12))
def test_the_objective_never_decreases_and_ends_at_an_optimum(seed, regularizer):
    samples = made_up(5 + seed, seed, spread=0.5)
    right, theta, history = alternated(samples, regularizer, max_rounds=50)
    assert (np.diff(history) > -1e-9 * abs(history[0])).all()
    assert history[-1] == pytest.approx(literal_objective(theta, samples, right, regularizer))
    classes, again = np.arange(len(right)), right.copy()
    assert split(gains(samples, classes, theta), again) <= 1e-9 * abs(history[-1])
    np.testing.assert_allclose(
        theta, literal_optimum(samples, right, regularizer), rtol=1e-4, atol=1e-5
    )


def test_alternation_moves_classes():
    """The published code re-sorts by the first direction, so no class ever changes sides."""
    better = 0
    for seed in range(10):
        samples = made_up(40, seed, spread=0.5)
        once, often = (alternated(samples, 0.1, rounds)[2] for rounds in (1, 30))
        assert often[0] == once[0]
        better += often[-1] > once[-1] + 1e-6
    assert better >= 5


def test_a_cap_on_rounds_is_kept():
    for rounds in (1, 2, 3):
        _, _, history = alternated(made_up(40, seed=1, spread=0.2), 0.01, rounds)
        assert len(history) <= 2 * rounds - 1


def test_the_start_goes_along_the_direction_in_which_class_means_differ_most():
    random = np.random.default_rng(0)
    for n_classes in (3, 8, 9):
        samples = made_up(n_classes, seed=n_classes)
        sizes = np.diff(samples.start)
        means = samples.sums / np.maximum(sizes, 1)[:, None]
        centred = np.where(sizes[:, None] > 0, means - samples.rows.mean(axis=0), 0)
        _, vectors = np.linalg.eigh((centred * sizes[:, None]).T @ centred)
        along = centred @ vectors[:, -1]
        classes = random.permutation(n_classes)
        right = start_split(samples, classes)
        highest, rest = along[classes][right], along[classes][~right]
        assert highest.min() >= rest.max() or rest.min() >= highest.max()
        assert abs(len(highest) - len(rest)) <= 1


def test_nodes_side_by_side_are_fitted_as_each_alone():
    samples = made_up(11, seed=4)
    order, bounds = np.array([3, 1, 4, 10, 5, 9, 2, 6, 8, 7, 0]), np.array([0, 4, 5, 11])
    effort = Effort(10, 1e-6, 20)
    together = fit_nodes(samples, order, bounds, 0.5, effort)
    for node, (first, last) in enumerate(pairwise(bounds)):
        alone = fit_nodes(samples, order[first:last], np.array([0, last - first]), 0.5, effort)
        np.testing.assert_array_equal(together[0][first:last], alone[0])
        for part, own in zip(together[1:], alone[1:], strict=True):
            np.testing.assert_array_equal(part[node], own[0])
    assert sorted(together[0]) == list(range(11))
    assert order.tolist() == [3, 1, 4, 10, 5, 9, 2, 6, 8, 7, 0], "the order given was changed"


def test_a_lone_class_goes_right_for_certain_and_classes_without_samples_by_chance():
    empty = ClassSamples(np.empty((0, 2), np.float32), np.zeros(4, np.int64), np.zeros((3, 2)))
    order, n_left, thetas, _ = fit_nodes(
        empty, np.arange(3), np.array([0, 1, 3]), 0.1, Effort(5, 1e-6, ALL)
    )
    assert order.tolist() == [0, 1, 2]
    assert n_left.tolist() == [0, 1]
    assert thetas.tolist() == [[0, 0, np.inf], [0, 0, 0]]


@pytest.mark.parametrize("most", [1, 7, 50, 10**6])
def test_of_many_rows_every_class_keeps_its_share(most):
    samples, classes = made_up(30, seed=2, most=40), np.random.default_rng(0).permutation(30)[:20]
    rows, places, weight = node_rows(samples, classes, most)
    of_class = np.repeat(np.arange(30), np.diff(samples.start))
    every = -(-np.isin(of_class, classes).sum() // most)
    literal = np.concatenate([samples.rows[of_class == label] for label in classes])
    np.testing.assert_array_equal(rows, literal[::every])
    own = np.repeat(np.arange(20), [(of_class == label).sum() for label in classes])
    np.testing.assert_array_equal(places, own[::every])
    assert len(rows) <= most
    assert weight * len(rows) == pytest.approx(len(literal))


def test_a_part_of_the_rows_and_a_rough_tolerance_are_nearly_as_good_as_everything():
    """If not, a cheap fit is a bad one."""
    samples = made_up(60, seed=3, spread=0.7, most=200)
    losses = []
    for tolerance, most_rows in ((1e-12, ALL), (1e-4, ALL), (1e-4, 1000)):
        right, theta, _ = alternated(samples, 1.0, 30, tolerance, most_rows)
        losses.append(-literal_objective(theta, samples, right, 1.0) / len(samples.rows))
    assert losses[1] == pytest.approx(losses[0], rel=0.005)
    assert losses[2] == pytest.approx(losses[0], rel=0.02)


@pytest.mark.parametrize("size", [1, 2, 5, 16])
def test_the_dominant_vector_is_the_last_of_eigh(size):
    random = np.random.default_rng(size)
    for gap in (1.0, 1e-3, 1e-6):
        vectors = np.linalg.qr(random.standard_normal((size, size)))[0]
        values = np.append(1 + gap, np.linspace(1, 0, size - 1))
        found = dominant((vectors * values) @ vectors.T)
        cosine = abs(found @ vectors[:, 0]) / np.linalg.norm(found)
        assert cosine == pytest.approx(1, abs=1e-6)


def test_equal_eigenvalues_and_none_give_numbers():
    found = dominant(np.diag([1.0, 2.0, 2.0]))
    assert abs(found[0]) < 1e-9
    assert np.linalg.norm(found) > 0.1
    assert dominant(np.zeros((2, 2))).tolist() == [0, 0]
