"""Noise for a softmax: classes by their frequency, alone or mixed with those of a tree.

What draws by frequency alone needs no tree, and compiles none of its kernels.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from umpteen.kernels.compiling import inlined, kernel
from umpteen.kernels.noise_tree import (
    NoiseArrays,
    draw,
    log_prob,
    log_prob_table,
    next_random,
    stream_of,
)


class FrequencyArrays(NamedTuple):
    """p(y), and what the alias method draws from it with."""

    logs: npt.NDArray[np.float32]  # (n_classes,)
    limit: npt.NDArray[np.float64]  # (n_classes,): below it the class itself,
    alias: npt.NDArray[np.int32]  # else this one


class MixtureArrays(NamedTuple):
    """p(y|x) = (1 - share) * tree(y|x) + share * frequency(y)."""

    tree: NoiseArrays
    share: float
    frequency: FrequencyArrays


@kernel
def alias_table(frequencies):
    """Return what `draw_by_frequency` needs, for frequencies of sum 1 (Vose 1991); O(n)."""
    n = len(frequencies)
    limit, alias = np.empty(n), np.empty(n, np.int32)
    small, large = np.empty(n, np.int32), np.empty(n, np.int32)
    n_small = n_large = 0
    for label in range(n):
        limit[label], alias[label] = frequencies[label] * n, label
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


@inlined
def draw_by_frequency(frequency, state):
    """Draw a class by its frequency; return it and the generator's next state; O(1)."""
    state, uniform = next_random(state)
    place = uniform * len(frequency.limit)
    label = min(int(place), len(frequency.limit) - 1)
    return (label if place - label < frequency.limit[label] else frequency.alias[label]), state


@inlined
def draw_mixed(noise, sample, state):
    """Draw a class for one sample: it, its log-probability, the generator's next state."""
    if noise.share > 0:
        state, uniform = next_random(state)
        if uniform < noise.share:
            label, state = draw_by_frequency(noise.frequency, state)
            return label, log_prob_mixed(noise, sample, label), state
    label, tree_log, state = draw(noise.tree, sample, state)
    return label, _mixed(noise, tree_log, label), state


@inlined
def log_prob_mixed(noise, sample, label):
    """Return the log-probability of one class for one sample."""
    return _mixed(noise, log_prob(noise.tree, sample, label), label)


@inlined
def _mixed(noise, tree_log, label):
    if noise.share == 0:
        return tree_log
    return _log_sum(
        np.log1p(-noise.share) + tree_log, np.log(noise.share) + noise.frequency.logs[label]
    )


@inlined
def _log_sum(one, two):
    return max(one, two) + np.log1p(np.exp(-abs(one - two)))


@kernel
def log_prob_mixed_rows(noise, samples, labels):
    """Return log-probabilities of `labels` (n, m), row i for sample i."""
    logs = np.empty(labels.shape, np.float32)
    for row in range(len(samples)):
        for i in range(labels.shape[1]):
            logs[row, i] = log_prob_mixed(noise, samples[row], labels[row, i])
    return logs


@kernel
def log_prob_mixed_table(noise, samples):
    """Return log-probabilities of all classes, (n, n_classes), where there is a tree."""
    table = log_prob_table(noise.tree, samples)
    if noise.share > 0:
        for row in range(len(samples)):
            for label in range(table.shape[1]):
                table[row, label] = _mixed(noise, table[row, label], label)
    return table


@kernel
def draw_visits(noise, samples, rows, indptr, indices, n, seed):
    """Draw for each visit of a training sample one of its labels, and `n` others.

    `samples` are all reduced samples, `rows` those that are visited, and their labels stand in
    CSR form. Returns labels (visits, 1 + n), the own one first, and the noise's log-probabilities
    of them. What a row draws depends on the seed and the row only.
    """
    labels = np.empty((len(rows), 1 + n), np.int32)
    logs = np.empty((len(rows), 1 + n), np.float32)
    for visit in range(len(rows)):
        row = rows[visit]
        own, state = _draw_own(indptr, indices, row, stream_of(seed, row))
        labels[visit, 0] = own
        logs[visit, 0] = log_prob_mixed(noise, samples[row], own)
        for i in range(1, n + 1):
            labels[visit, i], logs[visit, i], state = draw_mixed(noise, samples[row], state)
    return labels, logs


@kernel
def draw_visits_by_frequency(frequency, rows, indptr, indices, n, seed):
    """Draw as `draw_visits` does, without a tree."""
    labels = np.empty((len(rows), 1 + n), np.int32)
    logs = np.empty((len(rows), 1 + n), np.float32)
    for visit in range(len(rows)):
        row = rows[visit]
        labels[visit, 0], state = _draw_own(indptr, indices, row, stream_of(seed, row))
        for i in range(1, n + 1):
            labels[visit, i], state = draw_by_frequency(frequency, state)
        for i in range(n + 1):
            logs[visit, i] = frequency.logs[labels[visit, i]]
    return labels, logs


@inlined
def _draw_own(indptr, indices, row, state):
    """One of a row's labels, each as likely, and the generator's next state."""
    state, uniform = next_random(state)
    return indices[indptr[row] + int(uniform * (indptr[row + 1] - indptr[row]))], state
