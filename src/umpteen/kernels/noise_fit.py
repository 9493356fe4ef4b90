"""Fit nodes of the noise tree: which classes go right, and the logistic model that tells them.

A node's objective (Eq. 8 with the regulariser) is the sum over its samples of
log sigmoid(+-(w.z + b)), + where the sample's class goes right, - where it goes left, less
regularizer * (|w|^2 + b^2). `theta` is w with b as its last entry. `noise_newton` has the algebra.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from umpteen.kernels.compiling import inlined, kernel
from umpteen.kernels.noise_newton import ascend, evaluate, solve
from umpteen.kernels.noise_start import along_largest
from umpteen.kernels.sorting import stable_order

_SMALL = 0.01  # of the objective: a Newton step that gains less does not overshoot


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


class Effort(NamedTuple):
    """How exactly a node is fitted."""

    max_rounds: int  # of alternation
    tolerance: float  # of the objective: what another Newton step could gain
    most_rows: int  # of a node, by which it is fitted if it has more


@kernel
def fit_nodes(samples, order, bounds, regularizer, effort):
    """Fit nodes that stand side by side; node i has the classes `order[bounds[i]:bounds[i + 1]]`.

    Returns the classes with those that go left first, how many these are, `theta` of each node,
    and its rounds of alternation. A node of one class, which needs no model, sends it right with
    certainty.
    """
    n_nodes, dim = len(bounds) - 1, samples.rows.shape[1]
    order, theta = order.copy(), np.empty(dim + 1)
    n_left = np.zeros(n_nodes, np.int64)
    thetas = np.zeros((n_nodes, dim + 1))
    rounds = np.zeros(n_nodes, np.int32)
    history = np.empty(2 * effort.max_rounds + 1)
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
        n_values = fit_node(samples, classes, right, theta, regularizer, effort, history)
        rounds[node] = (n_values + 1) // 2
        for j in range(dim + 1):
            thetas[node, j] = theta[j]
        place = first
        for side in (False, True):
            for i in range(n_classes):
                if right[i] == side:
                    order[place] = classes[i]
                    place += 1
            if not side:
                n_left[node] = place - first
    return order, n_left, thetas, rounds


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
def fit_node(samples, classes, right, theta, regularizer, effort, history):
    """Alternate Newton ascent on `theta` and the best split `right`, both in place.

    Stops when the split is the best one for its own `theta`, or after `max_rounds` ascents (one
    leaves the split as it is). `history` gets the objective after each half round, which never
    decreases if all rows are taken. Returns how many there are. A split takes no pass over the
    rows: the value, its gradient and its Hessian do not depend on it. The last step is small, and
    is taken without evaluating the objective again.
    """
    size = len(theta)
    rows, places, weight = node_rows(samples, classes, effort.most_rows)
    slope, hessian, target = np.empty(size), np.empty((size, size)), np.empty(size)
    value = evaluate(rows, weight, theta, regularizer, slope, hessian)
    n_values, objective = 0, value
    for round_ in range(effort.max_rounds):
        aim(rows, places, weight, right, target)
        value = ascend(
            rows, weight, target, theta, regularizer, effort.tolerance, value, slope, hessian
        )
        objective = value
        for j in range(size):
            objective += target[j] * theta[j]
        history[n_values] = objective
        n_values += 1
        if round_ == effort.max_rounds - 1:
            break
        gain = split(gains(samples, classes, theta), right)
        if gain <= effort.tolerance * (1 + abs(objective)):
            break
        history[n_values] = objective + gain
        n_values += 1
    aim(rows, places, weight, right, target)
    for j in range(size):
        target[j] += slope[j]
    step, gain = solve(hessian, target, np.empty((size, size))), 0.0
    for j in range(size):
        gain += step[j] * target[j]
    if gain <= _SMALL * (1 + abs(objective)):
        for j in range(size):
            theta[j] += step[j]
    return n_values


@inlined
def node_rows(samples, classes, most):
    """Return rows of some classes, the place of each one's class, and how often each counts.

    Of more than `most` rows, every second or third and so on is taken, in the order of classes, so
    that a class keeps its share.
    """
    n_rows = 0
    for i in range(len(classes)):
        n_rows += samples.start[classes[i] + 1] - samples.start[classes[i]]
    every = max(1, (n_rows + most - 1) // most)
    n_taken = (n_rows + every - 1) // every
    rows = np.empty((n_taken, samples.rows.shape[1]), samples.rows.dtype)
    places = np.empty(n_taken, np.int64)
    passed, taken = 0, 0
    for i in range(len(classes)):
        first, last = samples.start[classes[i]], samples.start[classes[i] + 1]
        for row in range(first + -passed % every, last, every):
            for j in range(rows.shape[1]):
                rows[taken, j] = samples.rows[row, j]
            places[taken] = i
            taken += 1
        passed += last - first
    return rows, places, n_rows / max(n_taken, 1)


@inlined
def aim(rows, places, weight, right, target):
    """Fill `target`: half the sum of (z, 1) over rows that go right, less that of the others."""
    for j in range(len(target)):
        target[j] = 0.0
    for i in range(len(rows)):
        sign = 0.5 * weight if right[places[i]] else -0.5 * weight
        for j in range(len(target) - 1):
            target[j] += sign * rows[i, j]
        target[-1] += sign


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
    means, roots = np.zeros((len(classes), dim)), np.zeros(len(classes))
    for i in range(len(classes)):
        label = classes[i]
        size = samples.start[label + 1] - samples.start[label]
        roots[i] = np.sqrt(size)
        if size > 0:
            for j in range(dim):
                means[i, j] = samples.sums[label, j] / size - centre[j]
    split(along_largest(means, roots), right)
    return right


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
