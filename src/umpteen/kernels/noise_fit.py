"""Fit nodes of the noise tree: which classes go right, and the logistic model that tells them.

A node's objective (Eq. 8 with the regulariser) is the sum over its samples of
log sigmoid(+-(w.z + b)), + where the sample's class goes right, - where it goes left, less
regularizer * (|w|^2 + b^2). `theta` is w with b as its last entry.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

_MOST_STEPS = 100  # of Newton; about seven are taken
_MOST_HALVINGS = 40
_TOLERANCE = 1e-12  # of the objective: what another step could gain


class ClassSamples(NamedTuple):
    """Samples in the order of their classes; those of class c are `start[c]:start[c + 1]`."""

    rows: npt.NDArray[np.float32]  # (n, dim)
    start: npt.NDArray[np.int64]  # (n_classes + 1,)
    sums: npt.NDArray[np.float64]  # (n_classes, dim), of each class's rows


@njit(nogil=True, cache=True)
def class_sums(rows, start):
    """The sum of each class's rows, in float64."""
    sums = np.zeros((len(start) - 1, rows.shape[1]))
    for label in range(len(sums)):
        for row in range(start[label], start[label + 1]):
            for j in range(rows.shape[1]):
                sums[label, j] += rows[row, j]
    return sums


@njit(nogil=True, cache=True)
def fit_nodes(samples, order, bounds, regularizer, max_rounds):
    """Fit nodes that stand side by side; node i has the classes `order[bounds[i]:bounds[i + 1]]`.

    Returns the classes with those that go left first, how many these are, `theta` of each node,
    its log-likelihood (regulariser not counted), and its rounds of alternation. A node of one
    class, which needs no model, sends it right with certainty.
    """
    n_nodes, dim = len(bounds) - 1, samples.rows.shape[1]
    order = order.copy()
    n_left = np.zeros(n_nodes, np.int64)
    thetas = np.zeros((n_nodes, dim + 1))
    likelihoods = np.zeros(n_nodes)
    rounds = np.zeros(n_nodes, np.int32)
    history = np.empty(2 * max_rounds + 1)
    for node in range(n_nodes):
        classes = order[bounds[node] : bounds[node + 1]]
        if len(classes) == 1:
            thetas[node, dim] = np.inf
            continue
        right = start_split(samples, classes)
        n_values = fit_node(samples, classes, right, thetas[node], regularizer, max_rounds, history)
        rounds[node] = (n_values + 1) // 2
        penalty = regularizer * np.sum(thetas[node] ** 2)
        likelihoods[node] = history[n_values - 1] + penalty
        n_left[node] = len(classes) - np.count_nonzero(right)
        classes[:] = np.concatenate((classes[~right], classes[right]))
    return order, n_left, thetas, likelihoods, rounds


@njit(nogil=True, cache=True)
def decision_likelihood(samples, order, bounds, n_left, thetas):
    """Log-likelihood of where `samples` go at nodes that `fit_nodes` fitted to others."""
    total = 0.0
    for node in range(len(bounds) - 1):
        for i in range(bounds[node], bounds[node + 1]):
            way = -1.0 if i < bounds[node] + n_left[node] else 1.0
            for row in range(samples.start[order[i]], samples.start[order[i] + 1]):
                score = thetas[node, -1]
                for j in range(samples.rows.shape[1]):
                    score += thetas[node, j] * samples.rows[row, j]
                total += min(way * score, 0.0) - np.log1p(np.exp(-abs(score)))
    return total


@njit(nogil=True, cache=True)
def fit_node(samples, classes, right, theta, regularizer, max_rounds, history):
    """Alternate Newton ascent on `theta` and the best split `right`, both in place.

    Stops when the split is the best one for its own `theta`, or after `max_rounds` ascents (one
    leaves the split as it is). `history` gets the objective after each half round: it never
    decreases. Returns how many there are.
    """
    n_values = 0
    for round_ in range(max_rounds):
        objective = ascend(samples, classes, right, theta, regularizer)
        history[n_values] = objective
        n_values += 1
        if round_ == max_rounds - 1:
            break
        gain = split(gains(samples, classes, theta), right)
        if gain <= _TOLERANCE * (1 + abs(objective)):
            break
        history[n_values] = objective + gain
        n_values += 1
    return n_values


@njit(nogil=True, cache=True)
def start_split(samples, classes):
    """Halves along the direction in which the means of the classes differ most.

    Each mean counts as often as it has samples, which starts nearer to the optimum than the
    paper's plain sums do.
    """
    dim = samples.rows.shape[1]
    right = np.zeros(len(classes), np.bool_)
    if len(classes) == 2:  # which one goes right is only a name
        right[1] = True
        return right
    means = np.zeros((len(classes), dim))
    sizes = np.zeros(len(classes), np.int64)
    centre = np.zeros(dim)
    for i in range(len(classes)):
        sizes[i] = samples.start[classes[i] + 1] - samples.start[classes[i]]
        centre += samples.sums[classes[i]]
    centre /= max(sizes.sum(), 1)
    spread = np.zeros((dim, dim))
    for i in range(len(classes)):
        if sizes[i] > 0:
            means[i] = samples.sums[classes[i]] / sizes[i] - centre
            for j in range(dim):
                spread[j] += sizes[i] * means[i, j] * means[i]
    split(np.sum(means * dominant_direction(spread), axis=1), right)
    return right


@njit(nogil=True, cache=True)
def dominant_direction(spread):
    """The eigenvector of the largest eigenvalue, its largest entry positive."""
    if len(spread) == 0:
        return np.zeros(0)
    _, vectors = np.linalg.eigh(spread)
    direction = vectors[:, -1].copy()
    if direction[np.argmax(np.abs(direction))] < 0:
        direction = -direction
    return direction


@njit(nogil=True, cache=True)
def gains(samples, classes, theta):
    """What each class adds to the objective by going right rather than left (Eq. 9)."""
    result = np.empty(len(classes))
    for i in range(len(classes)):
        label = classes[i]
        total = (samples.start[label + 1] - samples.start[label]) * theta[-1]
        for j in range(len(theta) - 1):
            total += theta[j] * samples.sums[label, j]
        result[i] = total
    return result


@njit(nogil=True, cache=True)
def split(gain_of, right):
    """Send the half with the largest gains right, in place; returns what the objective gains.

    Of an odd number, the one in the middle goes where it gains. Equal gains keep their order.
    A split that gains nothing changes nothing.
    """
    n = len(gain_of)
    order = np.argsort(gain_of, kind="mergesort")
    first_right = n // 2
    if n % 2 == 1 and gain_of[order[first_right]] <= 0:
        first_right += 1
    better = np.zeros(n, np.bool_)
    better[order[first_right:]] = True
    improvement = 0.0
    for i in range(n):
        if better[i] != right[i]:
            improvement += gain_of[i] if better[i] else -gain_of[i]
    if improvement > 0 or not right.any():
        right[:] = better
    return max(improvement, 0.0)


@njit(nogil=True, cache=True)
def ascend(samples, classes, right, theta, regularizer):
    """Newton ascent on `theta` in place, each step halved until it gains; returns the objective.

    O(samples * dim^2) per step.
    """
    size = len(theta)
    gradient, trial_gradient = np.zeros(size), np.zeros(size)
    hessian, trial_hessian = np.zeros((size, size)), np.zeros((size, size))
    objective = evaluate(samples, classes, right, theta, regularizer, gradient, hessian)
    for _ in range(_MOST_STEPS):
        step = solve(hessian, gradient)
        if np.sum(step * gradient) <= 2 * _TOLERANCE * (1 + abs(objective)):
            break
        improved = False
        for _ in range(_MOST_HALVINGS):
            trial = evaluate(
                samples, classes, right, theta + step, regularizer, trial_gradient, trial_hessian
            )
            if trial > objective:
                improved = True
                break
            step *= 0.5
        if not improved:
            break
        theta += step
        objective = trial
        gradient, trial_gradient = trial_gradient, gradient
        hessian, trial_hessian = trial_hessian, hessian
    return objective


@njit(nogil=True, cache=True)
def evaluate(samples, classes, right, theta, regularizer, gradient, hessian):
    """The objective; fills its gradient, and the lower half of the *negative* Hessian."""
    dim = len(theta) - 1
    gradient[:] = -2 * regularizer * theta
    hessian[:] = 0
    objective = -regularizer * np.sum(theta * theta)
    sample = np.ones(dim + 1)
    for i in range(len(classes)):
        for row in range(samples.start[classes[i]], samples.start[classes[i] + 1]):
            score = theta[dim]
            for j in range(dim):
                sample[j] = samples.rows[row, j]
                score += theta[j] * sample[j]
            odds = np.exp(-abs(score))
            sure, unsure = 1 / (1 + odds), odds / (1 + odds)
            agrees = right[i] == (score > 0)
            objective -= np.log1p(odds) + (0.0 if agrees else abs(score))
            residual = unsure if agrees else sure
            if not right[i]:
                residual = -residual
            curvature = sure * unsure
            for j in range(dim + 1):
                gradient[j] += residual * sample[j]
                scaled = curvature * sample[j]
                for k in range(j + 1):
                    hessian[j, k] += scaled * sample[k]
    for j in range(dim + 1):
        hessian[j, j] += 2 * regularizer
    return objective


@njit(nogil=True, cache=True)
def solve(matrix, vector):
    """The solution for a positive definite matrix, given by its lower half (which is lost).

    Cholesky by hand: for so few rows a call of LAPACK takes longer than the work.
    """
    n = len(vector)
    solution = vector.copy()
    for j in range(n):
        for k in range(j):
            solution[j] -= matrix[j, k] * solution[k]
            matrix[j, j] -= matrix[j, k] ** 2
        matrix[j, j] = np.sqrt(matrix[j, j])
        solution[j] /= matrix[j, j]
        for i in range(j + 1, n):
            for k in range(j):
                matrix[i, j] -= matrix[i, k] * matrix[j, k]
            matrix[i, j] /= matrix[j, j]
    for j in range(n - 1, -1, -1):
        for i in range(j + 1, n):
            solution[j] -= matrix[i, j] * solution[i]
        solution[j] /= matrix[j, j]
    return solution
