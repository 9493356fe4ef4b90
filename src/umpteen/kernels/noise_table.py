"""Log-probabilities of all classes, some rows at a time, in float32.

A tile of nodes goes through all rows before the next one, so its weights are read once for many
rows. Every step over a tile is a loop without branches that becomes vector instructions; exp and
log are polynomials for the same reason. A row's answer has the same bits whichever rows stand
next to it, and differs from that of `noise_tree.log_prob` by rounding only.
"""

import numpy as np
from numba import njit
from numpy.polynomial import Polynomial
from numpy.polynomial.chebyshev import Chebyshev, chebpts1

_ROWS = 16  # whose leaves are held at a time
_TILE = 512  # nodes whose scores are held at a time
_FAST = {"contract", "reassoc", "nsz", "arcp"}  # infinities stay what they are


def _fitted(function, degree, low, high):
    """Coefficients of the polynomial, lowest first, that meets `function` at Chebyshev points."""
    points = (chebpts1(degree + 1) * (high - low) + high + low) / 2
    fit = Chebyshev.fit(points, function(points), degree, domain=[low, high])
    return tuple(np.float32(c) for c in fit.convert(kind=Polynomial).coef)


_POWER = _fitted(np.exp2, 6, -0.5, 0.5)
_LOG = _fitted(lambda x: np.log1p(x) / x, 9, 0.0, 1.0)
_HALF, _ONE, _ZERO = np.float32(0.5), np.float32(1), np.float32(0)
_TO_BITS = np.float32(1 / np.log(2))
_MOST = np.float32(80)  # e^-80 is as good as 0, and still a normal number


@njit(nogil=True, cache=True, fastmath=_FAST)
def softplus_of_minus(size):
    """Return log(1 + e^-size) within 3e-7, of a size from 0 to infinity."""
    bits = -min(size, _MOST) * _TO_BITS
    whole = np.int32(bits - _HALF)  # towards 0: the nearest
    x = bits - np.float32(whole)
    c = _POWER
    power = c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * (c[5] + x * c[6])))))
    x = power * np.int32((whole + np.int32(127)) << np.int32(23)).view(np.float32)
    c = _LOG
    low = c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * c[4])))
    high = c[5] + x * (c[6] + x * (c[7] + x * (c[8] + x * c[9])))
    square = x * x
    return x * (low + square * square * x * high)


@njit(nogil=True, cache=True)
def log_prob_table(tree, samples):
    """Return log-probabilities of all classes, (n, n_classes); O(dim * n_classes) each."""
    n_classes, n_leaves = len(tree.leaf_of), len(tree.label_of)
    table = np.empty((len(samples), n_classes), np.float32)
    logs = np.empty((min(_ROWS, len(samples)), n_leaves), np.float32)
    for first in range(0, len(samples), _ROWS):
        rows = samples[first : first + _ROWS]
        _log_leaves(tree, rows, logs)
        for row in range(len(rows)):
            _by_label(logs[row], tree.leaf_of, table[first + row])
    return table


@njit(nogil=True, cache=True)
def _log_leaves(tree, samples, logs):
    """Fill `logs` (n, n_leaves), level by level from the root, in place."""
    turned = np.empty((samples.shape[1], _TILE), np.float32)
    scores, before = np.empty(_TILE, np.float32), np.empty(_TILE, np.float32)
    for row in range(len(samples)):
        logs[row, 0] = _ZERO
    width = 1
    while width < len(tree.label_of):
        size = min(width, _TILE)
        for start in range(width - size, -1, -size):  # from the right: children overwrite none
            first = width + start
            biases = tree.biases[first : first + size]
            _turn(tree.weights[first : first + size], turned)
            for row in range(len(samples)):
                _scores(biases, turned, samples[row], scores[:size])
                for i in range(size):
                    before[i] = logs[row, start + i]
                log_children(
                    before[:size], scores[:size], logs[row, 2 * start : 2 * (start + size)]
                )
        width *= 2


@njit(nogil=True, cache=True)
def _turn(weights, turned):
    for i in range(len(weights)):
        for j in range(len(turned)):
            turned[j, i] = weights[i, j]


@njit(nogil=True, cache=True, fastmath=_FAST)
def _scores(biases, turned, sample, scores):
    """w.z + b of some nodes, whose weights are the columns of `turned`."""
    dim = len(sample)
    for i in range(len(scores)):
        scores[i] = biases[i]
    for j in range(0, dim - 3, 4):
        _add_four(sample[j : j + 4], turned[j : j + 4], scores)
    for j in range(dim - dim % 4, dim):
        factor, weights = sample[j], turned[j]
        for i in range(len(scores)):
            scores[i] += factor * weights[i]


@njit(nogil=True, cache=True, fastmath=_FAST)
def _add_four(sample, turned, scores):
    z0, z1, z2, z3 = sample[0], sample[1], sample[2], sample[3]
    w0, w1, w2, w3 = turned[0], turned[1], turned[2], turned[3]
    for i in range(len(scores)):
        scores[i] += (z0 * w0[i] + z1 * w1[i]) + (z2 * w2[i] + z3 * w3[i])


@njit(nogil=True, cache=True, fastmath=_FAST)
def log_children(before, scores, logs):
    """Return log-probabilities of children of nodes, left and right in turns, (2 * n_nodes,)."""
    for i in range(len(scores)):
        score = scores[i]
        common = before[i] - softplus_of_minus(abs(score))
        logs[2 * i] = common + min(-score, _ZERO)
        logs[2 * i + 1] = common + min(score, _ZERO)


@njit(nogil=True, cache=True)
def _by_label(logs, leaf_of, row):
    for label in range(len(leaf_of)):
        row[label] = logs[np.uint32(leaf_of[label])]
