"""Walk the noise tree: draw classes, and their log-probabilities.

Nodes are numbered as in a heap: the root is 1, the children of i are 2 i (left) and 2 i + 1
(right), and what would be node `n_leaves + j` is leaf j. A node sends a sample z to the right
with probability sigmoid(w.z + b).
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from umpteen.kernels.compiling import inlined, kernel
from umpteen.kernels.noise_beam import beam_topk as beam_topk
from umpteen.kernels.noise_table import log_prob_table as log_prob_table

_FAR = 1e4  # of the whitened features; no training sample goes beyond the root of their number

_GOLDEN: Any = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Any = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Any = np.uint64(0x94D049BB133111EB)


class NoiseArrays(NamedTuple):
    """A fitted tree; a leaf that has no class is label -1, and never reached."""

    weights: npt.NDArray[np.float32]  # (n_leaves, dim); row 0 is not used
    biases: npt.NDArray[np.float32]  # (n_leaves,); inf where all goes right
    label_of: npt.NDArray[np.int32]  # (n_leaves,)
    leaf_of: npt.NDArray[np.int32]  # (n_classes,)


@inlined
def next_random(state):
    """Return the next state of the generator (splitmix64), and a number from 0 to below 1."""
    state = np.uint64(state) + _GOLDEN
    bits = (state ^ (state >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    bits ^= bits >> np.uint64(31)
    return state, np.float64(bits >> np.uint64(11)) * 2.0**-53


@inlined
def stream_of(seed, row):
    """Return the generator's first state for a row, unrelated to those of its neighbours."""
    state = (np.uint64(seed) ^ np.uint64(row) * _MIX_1) * _MIX_2
    state, _ = next_random(state ^ (state >> np.uint64(32)))
    return state * _MIX_1 ^ (state >> np.uint64(29))


@inlined
def score(tree, node, sample):
    """Return w.z + b of a node; four sums at a time, for none waits for the other."""
    one, two, three, four = np.float64(tree.biases[node]), 0.0, 0.0, 0.0
    weights, dim = tree.weights[node], len(sample)
    for j in range(0, dim - 3, 4):
        one += np.float64(weights[j]) * sample[j]
        two += np.float64(weights[j + 1]) * sample[j + 1]
        three += np.float64(weights[j + 2]) * sample[j + 2]
        four += np.float64(weights[j + 3]) * sample[j + 3]
    for j in range(dim - dim % 4, dim):
        one += np.float64(weights[j]) * sample[j]
    return (one + two) + (three + four)


@inlined
def log_sides(value):
    """Return log sigmoid(-value) and log sigmoid(value), of going left and right."""
    rest = np.log1p(np.exp(-abs(value)))
    return min(-value, 0.0) - rest, min(value, 0.0) - rest


@kernel
def draw(tree, sample, state):
    """Draw a class for one sample: it, its log-probability, the generator's next state.

    O(dim * log(n_classes)).
    """
    node, probability = 1, 1.0
    while node < len(tree.label_of):
        to_right = 1 / (1 + np.exp(-score(tree, node, sample)))
        state, uniform = next_random(state)
        if uniform < to_right:
            probability *= to_right
            node = 2 * node + 1
        else:
            probability *= 1 - to_right
            node = 2 * node
    return tree.label_of[node - len(tree.label_of)], np.log(probability), state


@kernel
def draw_rows(tree, samples, n, seed, first_row):
    """Draw `n` classes for each sample; return them and their log-probabilities.

    Row i draws from the stream of `first_row + i`: cutting the rows into blocks changes nothing.
    """
    labels = np.empty((len(samples), n), np.int32)
    logs = np.empty((len(samples), n), np.float32)
    for row in range(len(samples)):
        state = stream_of(seed, first_row + row)
        for i in range(n):
            labels[row, i], logs[row, i], state = draw(tree, samples[row], state)
    return labels, logs


@kernel
def log_prob(tree, sample, label):
    """Return the log-probability of one class for one sample; O(dim * log(n_classes))."""
    node = tree.leaf_of[label] + len(tree.label_of)
    total = 0.0
    while node > 1:
        left, right = log_sides(score(tree, node // 2, sample))
        total += right if node % 2 == 1 else left
        node //= 2
    return total


@kernel
def log_prob_rows(tree, samples, labels):
    """Return log-probabilities of `labels` (n, m), row i for sample i."""
    logs = np.empty(labels.shape, np.float32)
    for row in range(len(samples)):
        for i in range(labels.shape[1]):
            logs[row, i] = log_prob(tree, samples[row], labels[row, i])
    return logs


@kernel
def reduce_sparse(indptr, indices, data, components, offset, scale):
    """Return (x.components - offset) * scale for each row of a CSR matrix, as float32."""
    reduced = np.empty((len(indptr) - 1, len(scale)), np.float32)
    sums = np.empty(len(scale))
    for row in range(len(reduced)):
        for j in range(len(scale)):
            sums[j] = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            for j in range(len(scale)):
                sums[j] += np.float64(data[entry]) * components[indices[entry], j]
        _scaled(sums, offset, scale, reduced[row])
    return reduced


@kernel
def reduce_dense(rows, components, offset, scale):
    """Return (x.components - offset) * scale for each row of an array, as float32."""
    reduced = np.empty((len(rows), len(scale)), np.float32)
    sums = np.empty(len(scale))
    for row in range(len(reduced)):
        for j in range(len(scale)):
            sums[j] = 0.0
        for feature in range(rows.shape[1]):
            for j in range(len(scale)):
                sums[j] += np.float64(rows[row, feature]) * components[feature, j]
        _scaled(sums, offset, scale, reduced[row])
    return reduced


@inlined
def _scaled(sums, offset, scale, reduced):
    for j in range(len(scale)):
        reduced[j] = min(max((sums[j] - offset[j]) * scale[j], -_FAR), _FAR)
