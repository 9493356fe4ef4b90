"""One pass of training a linear softmax on drawn classes: Adagrad, class by class.

Scores are x.w_y + b_y. In each batch all scores are taken at the same weights; then each class
that occurs in the batch makes one step along the sum of its gradients.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from umpteen.kernels.compiling import inlined, kernel
from umpteen.kernels.sorting import stable_order

_LEAST_SQUARE = np.float32(1e-38)  # squares of tiny gradients are 0 in float32

NEGATIVE_SAMPLING, NCE, ONE_VS_EACH, AUGMENT_REDUCE, SAMPLED_SOFTMAX = range(5)


class Weights(NamedTuple):
    """What is learned, and the sums of squared gradients so far, as Adagrad needs them."""

    weights: npt.NDArray[np.float32]  # (n_classes, d)
    biases: npt.NDArray[np.float32]  # (n_classes,)
    weight_squares: npt.NDArray[np.float32]
    bias_squares: npt.NDArray[np.float32]


class Rules(NamedTuple):
    """How to learn."""

    objective: int
    learning_rate: float
    regularizer: float
    batch_size: int
    center: float  # of corrected scores, as Eq. 6 penalises them: minus this
    feature_length: float  # of a sample: rates of weights are relative to it


@inlined
def _sigmoid(value):
    return 1 / (1 + np.exp(-value))


@kernel
def slopes(rules, scores, logs, labels, n_classes, bound, share, out):
    """Fill `out` with how the loss of one visit changes with each score: (1 + n,).

    The first label is the sample's own. `bound` and `share` serve augment-and-reduce: its
    estimate of 1 + sum of exp(s_y' - s_y) over the other classes, and how much of it this visit
    replaces. Returns the new estimate.

    negative_sampling: Eq. 6. nce: the same with scores s - log(n p), and a penalty on s.
    one_vs_each: the mean of softplus(s_y' - s_y) over other classes (Titsias 2016).
    augment_reduce: the bound of Ruiz et al. 2018 for the softmax; a class's part is a probability
    and so at most 1. sampled_softmax: cross-entropy with the sum over the other classes estimated
    by importance. A drawn class that is the own one counts in the first two, as theory asks, and
    not in the others, which sum over other classes.
    """
    n, penalty = len(scores) - 1, 2 * rules.regularizer
    if rules.objective == NEGATIVE_SAMPLING:
        out[0] = -_sigmoid(-scores[0]) + penalty * (scores[0] + logs[0] + rules.center)
        for i in range(1, n + 1):
            out[i] = (_sigmoid(scores[i]) + penalty * (scores[i] + logs[i] + rules.center)) / n
        return bound
    if rules.objective == NCE:
        out[0] = -_sigmoid(logs[0] + np.log(n) - scores[0]) + penalty * scores[0]
        for i in range(1, n + 1):
            out[i] = _sigmoid(scores[i] - logs[i] - np.log(n)) + penalty * scores[i] / n
        return bound
    out[0] = 0
    if rules.objective == ONE_VS_EACH:
        for i in range(1, n + 1):
            out[i] = 0 if labels[i] == labels[0] else _sigmoid(scores[i] - scores[0]) / n
            out[0] -= out[i]
    elif rules.objective == AUGMENT_REDUCE:
        total = 1.0
        for i in range(1, n + 1):
            other = labels[i] != labels[0]
            out[i] = np.exp(min(scores[i] - scores[0], 60)) * n_classes / n if other else 0
            total += out[i]
        bound = (1 - share) * bound + share * total
        for i in range(1, n + 1):
            out[i] = min(out[i] / bound, 1)
            out[0] -= out[i]
    else:
        top = scores[0]
        for i in range(1, n + 1):
            out[i] = scores[i] - logs[i] - np.log(n) if labels[i] != labels[0] else -np.inf
            top = max(top, out[i])
        total = np.exp(scores[0] - top)
        for i in range(1, n + 1):
            out[i] = np.exp(out[i] - top)
            total += out[i]
        for i in range(1, n + 1):
            out[i] /= total
            out[0] -= out[i]
    out[0] += penalty * scores[0]
    for i in range(1, n + 1):
        out[i] += penalty * scores[i] / n
    return bound


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def _dot(one, two):
    total = np.float32(0)
    for i in range(len(one)):
        total += one[i] * two[i]
    return total


@njit(nogil=True, cache=True, fastmath={"contract", "nsz"})
def _step(weights, squares, gradient, learning_rate):
    """Adagrad along a gradient."""
    for i in range(len(weights)):
        squares[i] += gradient[i] * gradient[i]
        weights[i] -= learning_rate * gradient[i] / np.sqrt(max(squares[i], _LEAST_SQUARE))


@inlined
def _step_bias(model, label, slope, learning_rate):
    model.bias_squares[label] += np.float32(slope * slope)
    squares = max(model.bias_squares[label], _LEAST_SQUARE)
    model.biases[label] -= learning_rate * slope / np.sqrt(squares)


@inlined
def run_end(flat, order, start):
    """Return where the places in `order` end that hold the same label as the first."""
    end = start + 1
    while end < len(order) and flat[order[end]] == flat[order[start]]:
        end += 1
    return end


@kernel
def train_dense(model, rules, X, rows, labels, logs, bounds, share):
    """Train in one pass over visits of dense rows; O(d) for each label of a visit."""
    size, width = rules.batch_size, labels.shape[1]
    scores, out = np.empty(width), np.empty((size, width))
    gradient, rate = np.empty(X.shape[1], np.float32), np.float32(rules.learning_rate)
    weight_rate = np.float32(rate / rules.feature_length)
    for first in range(0, len(rows), size):
        last = min(first + size, len(rows))
        for visit in range(first, last):
            row = rows[visit]
            for i in range(width):
                label = labels[visit, i]
                scores[i] = _dot(model.weights[label], X[row]) + model.biases[label]
            bounds[row] = slopes(
                rules, scores, logs[visit], labels[visit], len(model.biases), bounds[row], share,
                out[visit - first],
            )  # fmt: skip
        flat = np.empty((last - first) * width, np.int32)
        for place in range(len(flat)):
            flat[place] = labels[first + place // width, place % width]
        order, start = stable_order(flat), 0
        while start < len(order):
            end, total = run_end(flat, order, start), np.float32(0)
            gradient[:] = 0
            for position in range(start, end):
                place = order[position]
                slope = np.float32(out[place // width, place % width])
                total += slope
                row = rows[first + place // width]
                for i in range(len(gradient)):
                    gradient[i] += slope * X[row, i]
            label = flat[order[start]]
            _step(model.weights[label], model.weight_squares[label], gradient, weight_rate)
            _step_bias(model, label, total, rate)
            start = end


@kernel
def step_all(weights, squares, gradient, learning_rate):
    """Step by Adagrad for all classes, (n_classes, d)."""
    for label in range(len(weights)):
        _step(weights[label], squares[label], gradient[label], np.float32(learning_rate))


@kernel
def step_biases(biases, squares, gradient, learning_rate):
    """Step by Adagrad for all classes, (n_classes,)."""
    _step(biases, squares, gradient, np.float32(learning_rate))


@inlined
def _find(features, low, high, feature):
    """The first place from `low` to `high` whose feature is not below the one sought."""
    while low < high:
        middle = (low + high) >> 1
        if features[middle] < feature:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _sparse_dot(model, support, X, label, row):
    """The score of a class for a sample, without the bias; features of both are sorted."""
    starts, support_features = support
    indptr, features, values = X
    total, low, high = 0.0, starts[label], starts[label + 1]
    for i in range(indptr[row], indptr[row + 1]):
        low = _find(support_features, low, high, features[i])
        if low == high:
            break
        if support_features[low] == features[i]:
            total += model.weights[low] * values[i]
    return total


@kernel
def train_sparse(model, support, rules, X, rows, labels, logs, bounds, share):
    """Train as `train_dense` does; the weights of class y stand at `support`, its features.

    `support` is (indptr, features), and `model`'s weights and their squares are flat. `X` are
    the rows as `frozen_csr` gives them. O(log) for each feature of a sample and each label.
    """
    starts, support_features = support
    indptr, features, values = X
    size, width = rules.batch_size, labels.shape[1]
    scores, out = np.empty(width), np.empty((size, width))
    rate = np.float32(rules.learning_rate)
    weight_rate = np.float32(rate / rules.feature_length)
    most = 0
    for label in range(len(starts) - 1):
        most = max(most, starts[label + 1] - starts[label])
    gradient = np.zeros(most, np.float32)
    touched, is_touched = np.empty(len(gradient), np.int32), np.zeros(len(gradient), np.bool_)
    for first in range(0, len(rows), size):
        last = min(first + size, len(rows))
        for visit in range(first, last):
            row = rows[visit]
            for i in range(width):
                label = labels[visit, i]
                scores[i] = model.biases[label] + _sparse_dot(model, support, X, label, row)
            bounds[row] = slopes(
                rules, scores, logs[visit], labels[visit], len(model.biases), bounds[row], share,
                out[visit - first],
            )  # fmt: skip
        flat = np.empty((last - first) * width, np.int32)
        for place in range(len(flat)):
            flat[place] = labels[first + place // width, place % width]
        order, start = stable_order(flat), 0
        while start < len(order):
            end, total, n_touched = run_end(flat, order, start), np.float32(0), 0
            label = flat[order[start]]
            at, at_end = starts[label], starts[label + 1]
            for position in range(start, end):
                place = order[position]
                slope = np.float32(out[place // width, place % width])
                total += slope
                row = rows[first + place // width]
                low = at
                for i in range(indptr[row], indptr[row + 1]):
                    low = _find(support_features, low, at_end, features[i])
                    if low == at_end:
                        break
                    if support_features[low] == features[i]:
                        if not is_touched[low - at]:
                            touched[n_touched], is_touched[low - at] = low - at, True
                            n_touched += 1
                        gradient[low - at] += slope * values[i]
            for i in range(n_touched):
                place = touched[i]
                slope = gradient[place]
                gradient[place], is_touched[place] = 0, False
                model.weight_squares[at + place] += slope * slope
                squares = max(model.weight_squares[at + place], _LEAST_SQUARE)
                model.weights[at + place] -= weight_rate * slope / np.sqrt(squares)
            _step_bias(model, label, total, rate)
            start = end


@kernel
def pair_scores_dense(model, X, labels):
    """Return scores of `labels` (n, m), row i for sample i; -inf where a label is -1."""
    scores = np.full(labels.shape, -np.inf, np.float32)
    for row in range(len(labels)):
        for i in range(labels.shape[1]):
            label = labels[row, i]
            if label >= 0:
                scores[row, i] = _dot(model.weights[label], X[row]) + model.biases[label]
    return scores


@kernel
def pair_scores_sparse(model, support, X, labels):
    """Return what `pair_scores_dense` does, for sparse rows."""
    scores = np.full(labels.shape, -np.inf, np.float32)
    for row in range(len(labels)):
        for i in range(labels.shape[1]):
            label = labels[row, i]
            if label >= 0:
                scores[row, i] = model.biases[label] + _sparse_dot(model, support, X, label, row)
    return scores
