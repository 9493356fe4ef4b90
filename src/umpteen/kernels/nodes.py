"""Train children of one tree node, from gathering its samples to pruned weights."""

import numpy as np

from umpteen.kernels import simd
from umpteen.kernels.compiling import inlined, kernel, shared
from umpteen.kernels.coordinate_descent import logistic_regression, squared_hinge
from umpteen.kernels.sorting import sort_ids


@inlined
def gather(indptr, indices, data, samples, local_of):
    """Return rows of a CSR matrix with features renumbered to those that occur, plus a bias.

    `local_of` (features,) holds -1 everywhere, before and after. Returns the small CSR matrix
    (the bias is its last feature) and the sorted original feature ids.
    """
    n_entries = 0
    for i in range(len(samples)):
        row = samples[i]
        n_entries += indptr[row + 1] - indptr[row]
    touched = np.empty(min(n_entries, len(local_of)), np.int32)
    n_touched = 0
    for i in range(len(samples)):
        row = samples[i]
        for entry in range(indptr[row], indptr[row + 1]):
            feature = indices[entry]
            if local_of[feature] < 0:
                local_of[feature] = 0
                touched[n_touched] = feature
                n_touched += 1
    features = touched[:n_touched].copy()
    sort_ids(features, touched, len(local_of) - 1)
    for local in range(n_touched):
        local_of[features[local]] = local
    new_indptr = np.empty(len(samples) + 1, np.int64)  # a root may learn from all of a long X
    new_indices = np.empty(n_entries + len(samples), np.int32)
    new_data = np.empty(n_entries + len(samples), np.float32)
    position = 0
    for i in range(len(samples)):
        new_indptr[i] = position
        for entry in range(indptr[samples[i]], indptr[samples[i] + 1]):
            new_indices[position] = local_of[indices[entry]]
            new_data[position] = data[entry]
            position += 1
        new_indices[position] = n_touched
        new_data[position] = 1
        position += 1
    new_indptr[len(samples)] = position
    for local in range(n_touched):
        local_of[features[local]] = -1
    return new_indptr, new_indices, new_data, features


@inlined
def fill_targets(member_indptr, member_indices, samples, first, last, targets):
    """Set +1 where a sample belongs to child `first + lane`, else -1."""
    for i in range(len(samples)):
        for lane in range(simd.WIDTH):
            targets[i, lane] = -1
        start, end = member_indptr[samples[i]], member_indptr[samples[i] + 1]
        beyond = end
        while start < beyond:
            middle = (start + beyond) >> 1
            if member_indices[middle] < first:
                start = middle + 1
            else:
                beyond = middle
        while start < end and member_indices[start] < last:
            targets[i, member_indices[start] - first] = 1
            start += 1


def train_chunk(
    indptr, indices, data, samples, n_first, member_indptr, member_indices, first, last, local_of,
    logistic, *settings,
):  # fmt: skip
    """Return the weights of the children `first:last` of one node, trained on its `samples`.

    There are two chunks: one trained on the first `n_first` samples, and one where training went on
    from there with all of them. If these are all, both are the same. A chunk has the features that
    kept a weight (sorted), where each one's entries begin, the child of each entry (counted from
    `first`), its weight, and the children's biases. `settings` are cost, positive_weight,
    tolerance, max_epochs, prune and seed.
    """
    n = len(samples)
    alphas = np.empty((n, simd.WIDTH)) if logistic else simd.aligned_rows(n)
    return _train(
        indptr, indices, data, samples, n_first, member_indptr, member_indices, first, last,
        local_of, alphas, True if logistic else None, *settings,
    )  # fmt: skip


@kernel
def _train(
    indptr, indices, data, samples, n_first, member_indptr, member_indices, first, last, local_of,
    alphas, logistic, cost, positive_weight, tolerance, max_epochs, prune, seed,
):  # fmt: skip
    """As `train_chunk`; `logistic` is True or None: numba then compiles one of the solvers only."""
    indptr, indices, data, features = gather(indptr, indices, data, samples, local_of)
    weights, targets = simd.aligned_rows(len(features) + 1), simd.aligned_rows(len(samples))
    n_children = last - first
    is_twice = n_first < len(samples)
    final = nothing_kept(n_children)
    trial = nothing_kept(n_children)
    for left in range(0, n_children, simd.WIDTH):
        width = min(simd.WIDTH, n_children - left)
        start = first + left
        fill_targets(member_indptr, member_indices, samples, start, start + width, targets)
        alphas[:] = 0
        weights[:] = 0
        for phase in range(1 + is_twice):
            n_rows = n_first if phase == 0 else len(samples)
            n_before = n_first if phase else 0
            if logistic is None:
                squared_hinge(
                    indptr, indices, data, targets, n_before, n_rows, cost, positive_weight,
                    tolerance, max_epochs, seed, alphas, weights,
                )  # fmt: skip
            else:
                logistic_regression(
                    indptr, indices, data, targets, n_before, n_rows, cost, positive_weight,
                    tolerance, max_epochs, seed, alphas, weights,
                )  # fmt: skip
            if phase == is_twice:
                final = keep(final, weights, left, width, prune)
            else:
                trial = keep(trial, weights, left, width, prune)
    chunk = by_feature(final, features)
    return (by_feature(trial, features) if is_twice else chunk), chunk


@shared
def nothing_kept(n_children):
    """Return the weights of a chunk before any is kept: features, children, weights, biases.

    Only sixteen children at a time have dense weights; of the others, those that are kept remain.
    """
    return (
        np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.float32),
        np.empty(n_children, np.float32),
    )  # fmt: skip


@shared
def keep(kept, weights, left, width, prune):
    """Return `kept` with the weights of at least `prune` of `width` children from `left` on.

    `weights` is (features + bias, 16).
    """
    places, children, values, bias = kept
    n_features, n_before = len(weights) - 1, len(places)
    n_kept = n_before
    for place in range(n_features):
        for lane in range(width):
            n_kept += abs(weights[place, lane]) >= prune
    all_places = np.empty(n_kept, np.int32)
    all_children = np.empty(n_kept, np.uint8)
    all_values = np.empty(n_kept, np.float32)
    for i in range(n_before):
        all_places[i], all_children[i], all_values[i] = places[i], children[i], values[i]
    i = n_before
    for place in range(n_features):
        for lane in range(width):
            value = weights[place, lane]
            if abs(value) >= prune:
                all_places[i], all_children[i], all_values[i] = place, left + lane, value
                i += 1
    for lane in range(width):
        bias[left + lane] = weights[n_features, lane]
    return all_places, all_children, all_values, bias


@shared
def by_feature(kept, features):
    """Return a chunk: what was kept, sorted by feature, and by child within a feature."""
    places, children, values, bias = kept
    ends = np.zeros(len(features) + 1, np.int32)
    for i in range(len(places)):
        ends[places[i] + 1] += 1
    n_rows = 0
    for place in range(len(features)):
        n_rows += ends[place + 1] > 0
    rows, starts = np.empty(n_rows, np.int32), np.empty(n_rows + 1, np.int32)
    starts[0] = 0
    row = 0
    for place in range(len(features)):
        is_row = ends[place + 1] > 0
        ends[place + 1] += ends[place]
        if is_row:
            rows[row] = features[place]
            row += 1
            starts[row] = ends[place + 1]
    ordered_children, ordered_values = np.empty(len(places), np.uint8), np.empty_like(values)
    for i in range(len(places)):
        position = ends[places[i]]
        ends[places[i]] += 1
        ordered_children[position], ordered_values[position] = children[i], values[i]
    return rows, starts, ordered_children, ordered_values, bias
