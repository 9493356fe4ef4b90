"""Noise for a softmax: a tree's classes, mixed with classes by their frequency."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from umpteen.kernels.noise_tree import (
    NoiseArrays,
    draw,
    log_prob,
    log_prob_table,
    next_random,
    stream_of,
)


class MixtureArrays(NamedTuple):
    """p(y|x) = (1 - share) * tree(y|x) + share * frequency(y); with share 1 there is no tree."""

    tree: NoiseArrays
    share: float
    log_frequency: npt.NDArray[np.float32]  # (n_classes,)
    limit: npt.NDArray[np.float64]  # (n_classes,), of the alias method: below it the class itself,
    alias: npt.NDArray[np.int32]  # else this one


@njit(nogil=True, cache=True)
def alias_table(frequencies):
    """What `draw_by_frequency` needs, for frequencies that add up to 1 (Vose 1991); O(n)."""
    n = len(frequencies)
    limit, alias = frequencies * n, np.arange(n).astype(np.int32)
    small, large = np.empty(n, np.int32), np.empty(n, np.int32)
    n_small = n_large = 0
    for label in range(n):
        if limit[label] < 1:
            small[n_small] = label
            n_small += 1
        else:
            large[n_large] = label
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        poor, rich = small[n_small], large[n_large - 1]
        alias[poor] = rich
        limit[rich] -= 1 - limit[poor]
        if limit[rich] < 1:
            n_large -= 1
            small[n_small] = rich
            n_small += 1
    for rest in range(n_small):  # rounding left them over
        limit[small[rest]] = 1
    for rest in range(n_large):
        limit[large[rest]] = 1
    return limit, alias


@njit(nogil=True, cache=True)
def draw_by_frequency(limit, alias, state):
    """A class drawn by its frequency, and the generator's next state; O(1)."""
    state, uniform = next_random(state)
    place = uniform * len(limit)
    label = min(int(place), len(limit) - 1)
    return (label if place - label < limit[label] else alias[label]), state


@njit(nogil=True, cache=True)
def draw_mixed(noise, sample, state):
    """A class drawn for one sample, its log-probability, and the generator's next state."""
    if noise.share == 0:
        return draw(noise.tree, sample, state)
    if noise.share < 1:
        state, uniform = next_random(state)
        if uniform >= noise.share:
            label, tree_log, state = draw(noise.tree, sample, state)
            return label, _mixed(noise, tree_log, label), state
    label, state = draw_by_frequency(noise.limit, noise.alias, state)
    return label, log_prob_mixed(noise, sample, label), state


@njit(nogil=True, cache=True)
def log_prob_mixed(noise, sample, label):
    """The log-probability of one class for one sample."""
    if noise.share == 1:
        return np.float64(noise.log_frequency[label])
    return _mixed(noise, log_prob(noise.tree, sample, label), label)


@njit(nogil=True, cache=True)
def _mixed(noise, tree_log, label):
    if noise.share == 0:
        return tree_log
    return _log_sum(
        np.log1p(-noise.share) + tree_log, np.log(noise.share) + noise.log_frequency[label]
    )


@njit(nogil=True, cache=True)
def _log_sum(one, two):
    return max(one, two) + np.log1p(np.exp(-abs(one - two)))


@njit(nogil=True, cache=True)
def log_prob_mixed_rows(noise, samples, labels):
    """Log-probabilities of `labels` (n, m), row i for sample i."""
    logs = np.empty(labels.shape, np.float32)
    for row in range(len(samples)):
        for i in range(labels.shape[1]):
            logs[row, i] = log_prob_mixed(noise, samples[row], labels[row, i])
    return logs


@njit(nogil=True, cache=True)
def log_prob_mixed_table(noise, samples):
    """Log-probabilities of all classes, (n, n_classes), where there is a tree."""
    table = log_prob_table(noise.tree, samples)
    if noise.share > 0:
        for row in range(len(samples)):
            for label in range(table.shape[1]):
                table[row, label] = _mixed(noise, table[row, label], label)
    return table


@njit(nogil=True, cache=True)
def draw_visits(noise, samples, rows, indptr, indices, n, seed):
    """For each visit of a training sample: a label of its own, and `n` that are drawn.

    `samples` are all reduced samples, `rows` those that are visited, and their labels stand in
    CSR form. Returns labels (visits, 1 + n), the own one first, and the noise's log-probabilities
    of them. What a row draws depends on the seed and the row only.
    """
    labels = np.empty((len(rows), 1 + n), np.int32)
    logs = np.empty((len(rows), 1 + n), np.float32)
    for visit in range(len(rows)):
        row = rows[visit]
        state = stream_of(seed, row)
        state, uniform = next_random(state)
        own = indptr[row] + int(uniform * (indptr[row + 1] - indptr[row]))
        labels[visit, 0] = indices[own]
        logs[visit, 0] = log_prob_mixed(noise, samples[row], indices[own])
        for i in range(1, n + 1):
            labels[visit, i], logs[visit, i], state = draw_mixed(noise, samples[row], state)
    return labels, logs
