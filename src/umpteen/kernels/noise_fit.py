"""Fit nodes of the noise tree: which classes go right, and the logistic model that tells them.

A node's objective (Eq. 8 with the regulariser) is the sum over its samples of
log sigmoid(+-(w.z + b)), + where the sample's class goes right, - where it goes left, less
regularizer * (|w|^2 + b^2). `theta` is w with b as its last entry.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from umpteen.kernels.compiling import inlined, kernel
from umpteen.kernels.sorting import stable_order

_MOST_STEPS = 100  # of Newton; about seven are taken
_MOST_HALVINGS = 40
_TOLERANCE = 1e-12  # of the objective: what another step could gain


class ClassSamples(NamedTuple):
    """Samples in the order of their classes; those of class c are `start[c]:start[c + 1]`."""

    rows: npt.NDArray[np.float32]  # (n, dim)
    start: npt.NDArray[np.int64]  # (n_classes + 1,)
    sums: npt.NDArray[np.float64]  # (n_classes, dim), of each class's rows


@kernel
def class_sums(rows, start):
    """Return the sum of each class's rows, in float64."""
    sums = np.zeros((len(start) - 1, rows.shape[1]))
    for label in range(len(sums)):
        for row in range(start[label], start[label + 1]):
            for j in range(rows.shape[1]):
                sums[label, j] += rows[row, j]
    return sums


@kernel
def fit_nodes(samples, order, bounds, regularizer, max_rounds):
    """Fit nodes that stand side by side; node i has the classes `order[bounds[i]:bounds[i + 1]]`.

    Returns the classes with those that go left first, how many these are, `theta` of each node,
    its log-likelihood (regulariser not counted), and its rounds of alternation. A node of one
    class, which needs no model, sends it right with certainty.
    """
    n_nodes, dim = len(bounds) - 1, samples.rows.shape[1]
    order, theta = order.copy(), np.empty(dim + 1)
    n_left = np.zeros(n_nodes, np.int64)
    thetas = np.zeros((n_nodes, dim + 1))
    likelihoods = np.zeros(n_nodes)
    rounds = np.zeros(n_nodes, np.int32)
    history = np.empty(2 * max_rounds + 1)
    for node in range(n_nodes):
        first, n_classes = bounds[node], bounds[node + 1] - bounds[node]
        if n_classes == 1:
            thetas[node, dim] = np.inf
            continue
        classes = np.empty(n_classes, order.dtype)
        for i in range(n_classes):
            classes[i] = order[first + i]
        right = start_split(samples, classes)
        for j in range(dim + 1):
            theta[j] = 0.0
        n_values = fit_node(samples, classes, right, theta, regularizer, max_rounds, history)
        rounds[node] = (n_values + 1) // 2
        squares = 0.0
        for j in range(dim + 1):
            thetas[node, j] = theta[j]
            squares += theta[j] * theta[j]
        likelihoods[node] = history[n_values - 1] + regularizer * squares
        place = first
        for side in (False, True):
            for i in range(n_classes):
                if right[i] == side:
                    order[place] = classes[i]
                    place += 1
            if not side:
                n_left[node] = place - first
    return order, n_left, thetas, likelihoods, rounds


@kernel
def decision_likelihood(samples, order, bounds, n_left, thetas):
    """Return the log-likelihood of where `samples` go at nodes that were fitted to others."""
    total = 0.0
    for node in range(len(bounds) - 1):
        for i in range(bounds[node], bounds[node + 1]):
            side = -1.0 if i < bounds[node] + n_left[node] else 1.0
            for row in range(samples.start[order[i]], samples.start[order[i] + 1]):
                score = thetas[node, -1]
                for j in range(samples.rows.shape[1]):
                    score += thetas[node, j] * samples.rows[row, j]
                total += min(side * score, 0.0) - np.log1p(np.exp(-abs(score)))
    return total


@inlined
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


@inlined
def start_split(samples, classes):
    """Return halves along the direction in which the means of the classes differ most.

    Each mean counts as often as it has samples, which starts nearer to the optimum than the
    paper's plain sums do.
    """
    dim = samples.rows.shape[1]
    right = np.zeros(len(classes), np.bool_)
    if len(classes) == 2:  # which one goes right is only a name
        right[1] = True
        return right
    total, centre = 0, np.zeros(dim)
    for i in range(len(classes)):
        label = classes[i]
        total += samples.start[label + 1] - samples.start[label]
        for j in range(dim):
            centre[j] += samples.sums[label, j]
    for j in range(dim):
        centre[j] /= max(total, 1)
    means, spread = np.zeros((len(classes), dim)), np.zeros((dim, dim))
    for i in range(len(classes)):
        label = classes[i]
        size = samples.start[label + 1] - samples.start[label]
        if size > 0:
            for j in range(dim):
                means[i, j] = samples.sums[label, j] / size - centre[j]
            for j in range(dim):
                scaled = size * means[i, j]
                for k in range(dim):
                    spread[j, k] += scaled * means[i, k]
    direction, along = dominant_direction(spread), np.zeros(len(classes))
    for i in range(len(classes)):
        for j in range(dim):
            along[i] += means[i, j] * direction[j]
    split(along, right)
    return right


@inlined
def dominant_direction(spread):
    """Return the eigenvector of the largest eigenvalue, its largest entry positive."""
    dim = len(spread)
    direction = np.zeros(dim)
    if dim > 0:
        _, vectors = np.linalg.eigh(spread)
        largest = 0
        for j in range(1, dim):
            if abs(vectors[j, dim - 1]) > abs(vectors[largest, dim - 1]):
                largest = j
        sign = -1.0 if vectors[largest, dim - 1] < 0 else 1.0
        for j in range(dim):
            direction[j] = sign * vectors[j, dim - 1]
    return direction


@inlined
def gains(samples, classes, theta):
    """Return what each class adds to the objective by going right and not left (Eq. 9)."""
    result = np.empty(len(classes))
    for i in range(len(classes)):
        label = classes[i]
        total = (samples.start[label + 1] - samples.start[label]) * theta[-1]
        for j in range(len(theta) - 1):
            total += theta[j] * samples.sums[label, j]
        result[i] = total
    return result


@kernel
def split(gain_of, right):
    """Send the half with the largest gains right, in place; returns what the objective gains.

    Of an odd number, the one in the middle goes where it gains. Equal gains keep their order.
    A split that gains nothing changes nothing.
    """
    n = len(gain_of)
    order = stable_order(gain_of)
    first_right = n // 2
    if n % 2 == 1 and gain_of[order[first_right]] <= 0:
        first_right += 1
    better = np.zeros(n, np.bool_)
    for place in range(first_right, n):
        better[order[place]] = True
    improvement, none = 0.0, True
    for i in range(n):
        none = none and not right[i]
        if better[i] != right[i]:
            improvement += gain_of[i] if better[i] else -gain_of[i]
    if improvement > 0 or none:
        for i in range(n):
            right[i] = better[i]
    return max(improvement, 0.0)


@kernel
def ascend(samples, classes, right, theta, regularizer):
    """Ascend by Newton steps on `theta`, each halved until it gains; return the objective.

    O(samples * dim^2) per step.
    """
    size = len(theta)
    gradient, trial_gradient = np.zeros(size), np.zeros(size)
    hessian, trial_hessian = np.zeros((size, size)), np.zeros((size, size))
    moved = np.empty(size)
    objective = evaluate(samples, classes, right, theta, regularizer, gradient, hessian)
    for _ in range(_MOST_STEPS):
        step, gain = solve(hessian, gradient), 0.0
        for j in range(size):
            gain += step[j] * gradient[j]
        if gain <= 2 * _TOLERANCE * (1 + abs(objective)):
            break
        improved = False
        for _ in range(_MOST_HALVINGS):
            for j in range(size):
                moved[j] = theta[j] + step[j]
            trial = evaluate(
                samples, classes, right, moved, regularizer, trial_gradient, trial_hessian
            )
            if trial > objective:
                improved = True
                break
            for j in range(size):
                step[j] *= 0.5
        if not improved:
            break
        for j in range(size):
            theta[j] = moved[j]
        objective = trial
        gradient, trial_gradient = trial_gradient, gradient
        hessian, trial_hessian = trial_hessian, hessian
    return objective


@kernel
def evaluate(samples, classes, right, theta, regularizer, gradient, hessian):
    """Return the objective; fill its gradient and the lower half of the *negative* Hessian."""
    dim = len(theta) - 1
    squares, sample = 0.0, np.ones(dim + 1)
    for j in range(dim + 1):
        squares += theta[j] * theta[j]
        gradient[j] = -2 * regularizer * theta[j]
        for k in range(j + 1):
            hessian[j, k] = 0.0
    objective = -regularizer * squares
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


@inlined
def solve(matrix, vector):
    """Return the solution for a positive definite matrix, given by its lower half (overwritten).

    Cholesky by hand: for so few rows a call of LAPACK takes longer than the work.
    """
    n = len(vector)
    solution = np.empty(n)
    for j in range(n):
        solution[j] = vector[j]
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
