"""Labels known per group: their embeddings, and which samples of a group they fall to."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from umpteen.kernels.compiling import kernel, shared
from umpteen.kernels.sorting import best_to_front, stable_order


class GroupArrays(NamedTuple):
    """Samples, groups and labels as the kernels see them.

    Sample `i` has the features `x_indices[x_indptr[i]:x_indptr[i + 1]]` with `x_data`; group `j`
    the samples `members[member_indptr[j]:...]`; label `k` occurs in the groups
    `groups[group_indptr[k]:...]`, `counts` times each. `mean` (features,), whose squares add up
    to `mean_square`, is taken off every sample; `low` (samples, directions) are the samples'
    parts along the directions that count less, by the shares `shrink` (directions,).
    """

    x_indptr: npt.NDArray[np.int32]
    x_indices: npt.NDArray[np.int32]
    x_data: npt.NDArray[np.float32]
    member_indptr: npt.NDArray[np.int32]
    members: npt.NDArray[np.int32]
    group_indptr: npt.NDArray[np.int32]
    groups: npt.NDArray[np.int32]
    counts: npt.NDArray[np.float32]
    mean: npt.NDArray[np.float32]
    mean_square: float
    low: npt.NDArray[np.float32]
    shrink: npt.NDArray[np.float32]


class Scratch(NamedTuple):
    """One thread's memory: zeros where a kernel begins and ends."""

    sums: npt.NDArray[np.float64]  # (features,)
    step: npt.NDArray[np.float64]  # (features,)
    value: npt.NDArray[np.float64]  # (samples,)
    wins: npt.NDArray[np.float64]  # (samples,)


@shared
def _add_sample(arrays, sample, weight, sums):
    for entry in range(arrays.x_indptr[sample], arrays.x_indptr[sample + 1]):
        sums[arrays.x_indices[entry]] += weight * arrays.x_data[entry]


@shared
def _add_samples(arrays, samples, weights, sums, low_sums):
    """Adds up weighted samples; returns how often the mean is to be taken off."""
    total = 0.0
    for sample in samples:
        weight = weights[sample]
        if weight != 0:
            _add_sample(arrays, sample, weight, sums)
            for direction in range(len(low_sums)):
                low_sums[direction] += weight * arrays.low[sample, direction]
            total += weight
    return total


@shared
def _support(arrays, samples, sums, features):
    """The features that some samples have, in `features` as they come; returns how many.

    Marks with infinity in `sums`, which holds zeros before and after.
    """
    n = 0
    for sample in samples:
        for entry in range(arrays.x_indptr[sample], arrays.x_indptr[sample + 1]):
            feature = arrays.x_indices[entry]
            if sums[feature] == 0:
                sums[feature] = np.inf
                features[n] = feature
                n += 1
    for i in range(n):
        sums[features[i]] = 0
    return n


@shared
def _length(arrays, features, sums, low_sums, n_means):
    """Length of a sum of samples with the mean taken off, directions counting less."""
    square = 0.0
    for feature in features:
        square += sums[feature] * (sums[feature] - 2 * n_means * arrays.mean[feature])
    square += n_means * n_means * arrays.mean_square
    for direction in range(len(low_sums)):
        square -= arrays.shrink[direction] * low_sums[direction] ** 2
    return np.sqrt(max(0.0, square))


@shared
def _scale(features, sums, low_sums, n_means, factor):
    for feature in features:
        sums[feature] *= factor
    for direction in range(len(low_sums)):
        low_sums[direction] *= factor
    return n_means * factor


@shared
def _score(arrays, samples, sums, low_sums, n_means, value):
    """Similarity of samples to an embedding, but for what is the same for all samples."""
    for sample in samples:
        total = 0.0
        for entry in range(arrays.x_indptr[sample], arrays.x_indptr[sample + 1]):
            feature = arrays.x_indices[entry]
            total += arrays.x_data[entry] * (sums[feature] - n_means * arrays.mean[feature])
        for direction in range(len(low_sums)):
            shrunk = arrays.shrink[direction] * low_sums[direction]
            total -= arrays.low[sample, direction] * shrunk
        value[sample] = total


@shared
def _mark_winners(arrays, label, value, wins):
    """In each group of the label, every sample with the best value wins the label's count."""
    for position in range(arrays.group_indptr[label], arrays.group_indptr[label + 1]):
        group = arrays.groups[position]
        first, last = arrays.member_indptr[group], arrays.member_indptr[group + 1]
        best = -np.inf
        for sample in arrays.members[first:last]:
            best = max(best, value[sample])
        for sample in arrays.members[first:last]:
            if value[sample] == best:
                wins[sample] += arrays.counts[position]


@kernel
def embed(
    arrays, labels, sample_indptr, samples, weights, starts, iterations, step, nothing, features,
    scratch, capacity,
):  # fmt: skip
    """Run Algorithm 1 of EAGLE for some labels: their embeddings, their samples' similarities.

    Label `labels[p]` occurs in groups of the samples `samples[sample_indptr[p]:...]`, which
    weigh `weights` in its first embedding; where `starts[p]` is not negative, that sample is
    the first embedding. Returns the embeddings as CSR (`indptr`, `indices`, `data` of at most
    `capacity` entries), `scores` in the order of `samples`, and which labels are `vague`: their
    first sum is zero, but for the share `nothing` of what was added, and so they stay; winners
    that add up to nothing change nothing. An
    embedding is given at the features of its samples; elsewhere it is a multiple of the mean,
    which makes no difference between samples. `features` (features,) is room to work. Costs one
    pass over the samples for the start and two for each iteration.
    """
    n_labels, n_directions = len(labels), len(arrays.shrink)
    indptr = np.zeros(n_labels + 1, np.int64)
    indices = np.empty(capacity, np.int32)
    data = np.empty(capacity, np.float32)
    scores = np.empty(len(samples), np.float32)
    vague = np.zeros(n_labels, np.bool_)
    sums, value, wins = scratch.sums, scratch.value, scratch.wins
    low_sums, low_step = np.zeros(n_directions), np.zeros(n_directions)
    for p in range(n_labels):
        own = samples[sample_indptr[p] : sample_indptr[p + 1]]
        used = features[: _support(arrays, own, sums, features)]
        for direction in range(n_directions):
            low_sums[direction] = 0
        if starts[p] >= 0:
            wins[starts[p]] = 1
        else:
            for i in range(len(own)):
                wins[own[i]] = weights[sample_indptr[p] + i]
        total = _add_samples(arrays, own, wins, sums, low_sums)
        n_means = total if arrays.mean_square > 0 else 0.0
        for sample in own:
            wins[sample] = 0
        length = _length(arrays, used, sums, low_sums, n_means)
        vague[p] = length <= nothing * total
        n_means = _scale(used, sums, low_sums, n_means, 0.0 if vague[p] else 1 / length)
        _score(arrays, own, sums, low_sums, n_means, value)
        for _ in range(0 if vague[p] else iterations):
            _mark_winners(arrays, labels[p], value, wins)
            for direction in range(n_directions):
                low_step[direction] = 0
            step_means = _add_samples(arrays, own, wins, scratch.step, low_step)
            for sample in own:
                wins[sample] = 0
            length = _length(arrays, used, scratch.step, low_step, step_means)
            if length > nothing * step_means:
                for feature in used:
                    sums[feature] += step / length * scratch.step[feature]
                for direction in range(n_directions):
                    low_sums[direction] += step / length * low_step[direction]
                n_means += step / length * step_means
                new_length = _length(arrays, used, sums, low_sums, n_means)
                if new_length > 0:
                    n_means = _scale(used, sums, low_sums, n_means, 1 / new_length)
                _score(arrays, own, sums, low_sums, n_means, value)
            for feature in used:
                scratch.step[feature] = 0
        for i in range(len(own)):
            scores[sample_indptr[p] + i] = value[own[i]]
        first = indptr[p]
        for i in range(len(used)):
            indices[first + i] = used[i]
            data[first + i] = sums[used[i]] - n_means * arrays.mean[used[i]]
        indptr[p + 1] = first + len(used)
        for feature in used:
            sums[feature] = 0
        for sample in own:
            value[sample] = 0
    return indptr, indices[: indptr[-1]], data[: indptr[-1]], scores, vague


@kernel
def largest(indptr, indices, data, keep):
    """Return the `keep` largest values of each CSR row by column; of equal ones the first."""
    n_rows = len(indptr) - 1
    ends = np.zeros(n_rows + 1, np.int64)
    for row in range(n_rows):
        ends[row + 1] = ends[row] + min(keep, indptr[row + 1] - indptr[row])
    columns = np.empty(ends[-1], np.int32)
    values = np.empty(ends[-1], np.float32)
    for row in range(n_rows):
        first, last = indptr[row], indptr[row + 1]
        n = ends[row + 1] - ends[row]
        if n == 0:
            continue
        places, sizes = np.empty(last - first, np.int64), np.empty(last - first, np.float32)
        for i in range(len(sizes)):
            places[i], sizes[i] = first + i, abs(data[first + i])
        best_to_front(places, sizes, n)
        own = np.empty(n, np.int32)
        for i in range(n):
            own[i] = indices[places[i]]
        order = stable_order(own)
        for i in range(n):
            columns[ends[row] + i] = own[order[i]]
            values[ends[row] + i] = data[places[order[i]]]
    return ends, columns, values


@shared
def _place(indices, first, last, label):
    """Where a label stands in a sorted row that has it."""
    while first < last:
        middle = (first + last) // 2
        if indices[middle] < label:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def assign(
    member_indptr, members, label_indptr, labels, wanted, score_indptr, score_labels, scores, chosen
):
    """Run Algorithm 2 of EAGLE: mark in `chosen` the pairs of samples and labels that are given.

    Label `labels[q]` of group `j` (`q` from `label_indptr[j]` to `label_indptr[j + 1]`) goes to
    the `wanted[q]` members with the best scores; equal scores stand by sample number. `scores`
    is CSR (samples, labels) and has every label of a group for each of its members; `chosen`
    has its order. Costs the number of pairs, times the logarithm of labels per group.
    """
    for group in range(len(member_indptr) - 1):
        own = members[member_indptr[group] : member_indptr[group + 1]]
        places = np.empty(len(own), np.int64)
        keys = np.empty(len(own), np.float32)
        for q in range(label_indptr[group], label_indptr[group + 1]):
            for i in range(len(own)):
                first, last = score_indptr[own[i]], score_indptr[own[i] + 1]
                places[i] = _place(score_labels, first, last, labels[q])
                keys[i] = -scores[places[i]]
            n = int(min(wanted[q], len(own)))
            if n == 1:
                best = 0
                for i in range(1, len(own)):
                    if keys[i] < keys[best]:
                        best = i
                chosen[places[best]] = True
            elif n == len(own):
                for i in range(n):
                    chosen[places[i]] = True
            else:
                order = stable_order(keys)
                for i in range(n):
                    chosen[places[order[i]]] = True
