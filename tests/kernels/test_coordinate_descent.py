"""If the solver misses its optimum, every label's classifier is worse than it could be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, hstack, random_array, vstack
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from umpteen.kernels.coordinate_descent import (
    first_state,
    logistic_regression,
    shuffle,
    squared_hinge,
)
from umpteen.kernels.simd import WIDTH

SOLVERS = {"squared_hinge": squared_hinge, "logistic": logistic_regression}
COST = 0.7


@pytest.fixture(params=SOLVERS)
def loss(request):
    return request.param


def problem(n_samples=120, n_features=30, seed=0):
    """Sparse rows with a bias, and sixteen noisy targets that the rows explain in part."""
    random = np.random.default_rng(seed)
    rows = random_array((n_samples, n_features), density=0.2, rng=random, dtype=np.float32)
    X = with_bias(csr_matrix(rows))
    truth = random.normal(size=(n_features + 1, WIDTH))
    noise = random.normal(size=(n_samples, WIDTH))
    targets = np.where(X @ truth + 0.5 * noise > 0.4, 1, -1).astype(np.float32)
    targets[0], targets[1] = 1, -1  # both sides in every lane
    return X, targets


def with_bias(X):
    ones = np.ones((X.shape[0], 1), np.float32)
    return csr_matrix(hstack([X, ones]), dtype=np.float32)


def solve(
    loss, X, targets, *, weight=1.0, tolerance=1e-3, max_epochs=2000, seed=0, cost=COST, rows=None
):
    """Weights, and the visits of the last call; one call for each number of `rows`."""
    weights = np.zeros((X.shape[1], WIDTH), np.float32)
    alphas = np.zeros(targets.shape, np.float64 if loss == "logistic" else np.float32)
    first = 0
    for n in rows or [X.shape[0]]:
        visits = SOLVERS[loss](
            X.indptr, X.indices, X.data, targets, first, n, cost, weight, tolerance, max_epochs,
            seed, alphas, weights,
        )  # fmt: skip
        first = n
    return weights, visits


def test_reading_ahead_changes_nothing():
    """A problem that does not fit the cache takes another path through the same steps."""
    X, targets = problem(n_samples=300)
    small, few = solve("squared_hinge", X, targets, rows=[200, 300])
    unused = csr_matrix((X.shape[0], 2**20 // 64), dtype=np.float32)
    large, as_few = solve(
        "squared_hinge", csr_matrix(hstack([X, unused])), targets, rows=[200, 300]
    )
    np.testing.assert_array_equal(large[: X.shape[1]], small)
    assert few == as_few
    assert not large[X.shape[1] :].any()


def test_training_on_more_samples_continues_to_the_same_optimum(loss):
    """What a validation split was left out of is only the start of the final model."""
    X, targets = problem()
    part, _ = solve(loss, X, targets, rows=[90])
    alone, _ = solve(loss, X[:90], targets[:90])
    np.testing.assert_array_equal(part, alone)
    continued, few = solve(loss, X, targets, rows=[110, 120], tolerance=0.1)
    anew, many = solve(loss, X, targets, tolerance=0.1)
    assert few is None or few < many
    continued, _ = solve(loss, X, targets, rows=[90, 120])
    anew, _ = solve(loss, X, targets)
    reached, best = (objective(loss, X, targets, weights) for weights in (continued, anew))
    np.testing.assert_allclose(reached, best, rtol=1e-3)


def objective(loss, X, targets, weights, *, weight=1.0, cost=COST):
    """What is minimised, for each column of targets, in float64."""
    margins = targets * (X.astype(np.float64) @ weights.astype(np.float64))
    hinge = np.maximum(0, 1 - margins)
    losses = np.logaddexp(0, -margins) if loss == "logistic" else hinge**2
    costs = np.where(targets > 0, cost * weight, cost)
    return (weights.astype(np.float64) ** 2).sum(axis=0) / 2 + (costs * losses).sum(axis=0)


def by_scikit_learn(loss, X, targets, weight):
    settings = {"C": COST, "fit_intercept": False, "class_weight": {1: weight}, "tol": 1e-8}
    if loss == "logistic":
        model = LogisticRegression(**settings, max_iter=10_000)
    else:
        model = LinearSVC(**settings, dual=True, max_iter=100_000, random_state=0)
    X = X.astype(np.float64)
    return np.column_stack([model.fit(X, lane).coef_[0].copy() for lane in targets.T])


def one_by_one(X, target, *, weight=1.0, cost=COST, epochs=2000):
    """Algorithm 1 of Hsieh et al. (2008) for the squared hinge, literally, in float64."""
    rows = X.toarray().astype(np.float64)
    softness = np.where(target > 0, 0.5 / (cost * weight), 0.5 / cost)
    alphas, weights = np.zeros(len(rows)), np.zeros(rows.shape[1])
    for _ in range(epochs):
        worst = 0.0
        for i, row in enumerate(rows):
            gradient = target[i] * (weights @ row) - 1 + softness[i] * alphas[i]
            projected = min(gradient, 0) if alphas[i] == 0 else gradient
            worst = max(worst, abs(projected))
            if projected != 0:
                before = alphas[i]
                alphas[i] = max(before - gradient / (row @ row + softness[i]), 0)
                weights += (alphas[i] - before) * target[i] * row
        if worst < 1e-9:
            break
    return weights


@pytest.mark.parametrize("weight", [1.0, 3.0, 0.25])
def test_objective_is_that_of_scikit_learn_in_all_lanes(loss, weight):
    X, targets = problem()
    ours, _ = solve(loss, X, targets, weight=weight)
    theirs = by_scikit_learn(loss, X, targets, weight)
    np.testing.assert_allclose(
        objective(loss, X, targets, ours, weight=weight),
        objective(loss, X, targets, theirs, weight=weight),
        rtol=1e-3,
    )


@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_sixteen_at_once_reach_the_optimum_of_one_at_a_time(weight):
    X, targets = problem(n_samples=40, n_features=12)
    ours, _ = solve("squared_hinge", X, targets, weight=weight)
    for lane in (0, 7, 15):
        literal = one_by_one(X, targets[:, lane], weight=weight)
        np.testing.assert_allclose(ours[:, lane], literal, atol=5e-3)


def test_a_tight_tolerance_comes_closer_than_a_loose_one(loss):
    X, targets = problem()
    best = objective(loss, X, targets, by_scikit_learn(loss, X, targets, 1.0))
    gaps = [
        (objective(loss, X, targets, solve(loss, X, targets, tolerance=t)[0]) - best).mean()
        for t in (1.0, 0.1, 1e-3)
    ]
    assert gaps[0] > gaps[1] > gaps[2] > -1e-3
    assert gaps[2] < 1e-3 < gaps[0]


def test_same_seed_gives_the_same_bits_and_another_one_another_order(loss):
    X, targets = problem()
    first, again, other = (
        solve(loss, X, targets, tolerance=0.3, seed=seed)[0] for seed in (5, 5, 6)
    )
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()


def test_lanes_do_not_mix(loss):
    X, targets = problem()
    order = np.random.default_rng(1).permutation(WIDTH)
    weights, _ = solve(loss, X, targets, tolerance=0.1)
    permuted, _ = solve(loss, X, np.ascontiguousarray(targets[:, order]), tolerance=0.1)
    assert permuted.tobytes() == np.ascontiguousarray(weights[:, order]).tobytes()


def test_a_hard_neighbour_does_not_spoil_a_lane(loss):
    X, targets = problem()
    alone = targets.copy()
    alone[:, 1:] = -1
    crowded, _ = solve(loss, X, targets)
    quiet, _ = solve(loss, X, alone)
    np.testing.assert_allclose(
        objective(loss, X, targets, crowded)[0], objective(loss, X, alone, quiet)[0], rtol=1e-3
    )


def test_labels_that_nobody_has_get_scores_below_zero(loss):
    X, targets = problem()
    targets[:, 3] = -1
    weights, _ = solve(loss, X, targets)
    assert (X @ weights[:, 3] < 0).all()


def test_lanes_of_one_side_reach_the_optimum():
    X, targets = problem(n_samples=40, n_features=12)
    targets[:, 3], targets[:, 4] = -1, 1
    weights, _ = solve("squared_hinge", X, targets)
    for lane in (3, 4):
        literal = one_by_one(X, targets[:, lane])
        np.testing.assert_allclose(weights[:, lane], literal, atol=5e-3)


def test_samples_without_features_change_nothing(loss):
    X, targets = problem(n_samples=60)
    empty = csr_matrix((4, X.shape[1]), dtype=np.float32)
    more_X = csr_matrix(vstack([X, empty]))
    more_targets = np.vstack([targets, targets[:4]])
    more, _ = solve(loss, more_X, more_targets)
    plain, _ = solve(loss, X, targets)
    np.testing.assert_allclose(more, plain, atol=5e-3)


def test_stored_zeros_count_as_absent(loss):
    X, targets = problem(n_samples=60)
    zeroed = X.copy()
    zeroed.data[zeroed.indptr[5] : zeroed.indptr[6]] = 0
    cleaned = zeroed.copy()
    cleaned.eliminate_zeros()
    np.testing.assert_array_equal(solve(loss, zeroed, targets)[0], solve(loss, cleaned, targets)[0])


def test_without_any_feature_the_weights_stay_zero(loss):
    _, targets = problem(n_samples=20)
    weights, _ = solve(loss, csr_matrix((20, 5), dtype=np.float32), targets)
    assert not weights.any()


def test_without_any_sample_the_weights_stay_zero(loss):
    weights, _ = solve(loss, csr_matrix((0, 5), dtype=np.float32), np.empty((0, 16), np.float32))
    assert not weights.any()


def test_one_sample_is_enough():
    X = csr_matrix(np.array([[2, 0, 1]], np.float32))
    targets = np.where(np.arange(WIDTH) % 2, 1, -1).astype(np.float32)[None]
    weights, _ = solve("squared_hinge", X, targets)
    # min |w|^2 / 2 + cost (1 - y w.x)^2 is w = y x / (|x|^2 + 1 / (2 cost))
    expected = np.outer([2, 0, 1], targets[0]) / (5 + 0.5 / COST)
    np.testing.assert_allclose(weights, expected, atol=1e-3)
    logistic, _ = solve("logistic", X, targets)
    slope = COST / (1 + np.exp(targets[0] * (X @ logistic)[0]))
    np.testing.assert_allclose(logistic, np.outer([2, 0, 1], targets[0] * slope), atol=1e-3)


def test_a_row_twice_is_a_row_of_twice_the_cost(loss):
    X, targets = problem(n_samples=50)
    twice = csr_matrix(vstack([X, X]))
    doubled, _ = solve(loss, twice, np.vstack([targets, targets]))
    costly, _ = solve(loss, X, targets, cost=2 * COST)
    np.testing.assert_allclose(doubled, costly, atol=1e-2)


def test_contradicting_twins_cancel_out(loss):
    X, targets = problem(n_samples=50)
    weights, _ = solve(loss, csr_matrix(vstack([X, X])), np.vstack([targets, -targets]))
    np.testing.assert_allclose(weights, 0, atol=1e-2)


@pytest.mark.parametrize("max_epochs", [1, 2, 5])
def test_training_ends_after_the_passes_that_were_allowed(max_epochs):
    X, targets = problem()
    _, visits = solve("squared_hinge", X, targets, tolerance=1e-9, max_epochs=max_epochs)
    assert max_epochs * X.shape[0] <= visits < (max_epochs + 1) * X.shape[0]


def test_more_passes_come_closer(loss):
    X, targets = problem()
    values = [
        objective(loss, X, targets, solve(loss, X, targets, tolerance=1e-9, max_epochs=m)[0]).mean()
        for m in (1, 4, 50)
    ]
    assert values[0] > values[1] > values[2]


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_features_of_any_scale_give_finite_weights(loss, scale):
    X, targets = problem()
    X.data *= np.float32(scale)
    weights, _ = solve(loss, X, targets, max_epochs=20, tolerance=0.1)
    assert np.isfinite(weights).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_sample_far_on_the_wrong_side_does_not_stop_the_training(loss):
    """One mistyped row among many must not cost a person the whole model."""
    rows = np.ones((2001, 2), np.float32)
    rows[1000:2000, 0], rows[2000, 0] = -1, 100
    targets = np.full((2001, WIDTH), -1, np.float32)
    targets[:1000] = 1
    weights, _ = solve(loss, csr_matrix(rows), targets, max_epochs=100)
    assert np.isfinite(weights).all()


@given(st.integers(0, 60), st.integers(0, 5), st.integers(0, 2**31 - 1))
def test_shuffle_permutes_the_beginning_and_leaves_the_rest(n, n_rest, seed):
    values = np.arange(n + n_rest)
    shuffle(values, n, first_state(seed))
    assert sorted(values[:n]) == list(range(n))
    assert values[n:].tolist() == list(range(n, n + n_rest))


def test_shuffle_reaches_every_order_about_equally_often():
    """A sample that always comes last would be learnt from less."""
    counts = dict.fromkeys([(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)], 0)
    state = first_state(0)
    for _ in range(3000):
        values = np.arange(3)
        state = np.uint64(shuffle(values, 3, state))
        counts[tuple(values.tolist())] += 1
    assert all(400 < count < 600 for count in counts.values())
