"""Train children of one tree node, from gathering its samples to pruned weights."""

import numpy as np

from umpteen.kernels import simd
from umpteen.kernels.compiling import inlined, kernel
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
    new_indptr = np.empty(len(samples) + 1, np.int32)
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
    weights, targets = _room(len(features) + 1, len(samples), last - first)
    is_twice = n_first < len(samples)
    before = np.empty_like(weights) if is_twice else weights
    for block in range(len(weights)):
        start = first + block * simd.WIDTH
        end = min(start + simd.WIDTH, last)
        fill_targets(member_indptr, member_indices, samples, start, end, targets)
        alphas[:] = 0
        for phase in range(1 + is_twice):
            n_rows = n_first if phase == 0 else len(samples)
            n_before = n_first if phase else 0
            if logistic is None:
                squared_hinge(
                    indptr, indices, data, targets, n_before, n_rows, cost, positive_weight,
                    tolerance, max_epochs, seed, alphas, weights[block],
                )  # fmt: skip
            else:
                logistic_regression(
                    indptr, indices, data, targets, n_before, n_rows, cost, positive_weight,
                    tolerance, max_epochs, seed, alphas, weights[block],
                )  # fmt: skip
            if phase == 0 and is_twice:
                before[block] = weights[block]
    chunk = prune_weights(weights, features, last - first, prune)
    if is_twice:
        return prune_weights(before, features, last - first, prune), chunk
    return chunk, chunk


@inlined
def _room(n_features, n_samples, n_children):
    """Weights at zero and targets not yet filled, of blocks of sixteen children."""
    n_blocks = (n_children + simd.WIDTH - 1) // simd.WIDTH
    weights = simd.aligned_rows(n_blocks * n_features)
    weights[:] = 0
    weights = weights.reshape((n_blocks, n_features, simd.WIDTH))
    return weights, simd.aligned_rows(n_samples)


@inlined
def prune_weights(weights, features, n_children, prune):
    """Keep weights of at least `prune`; `weights` is (blocks, features + bias, 16)."""
    n_features = len(features)
    counts = np.zeros(n_features, np.int32)
    for block in range(len(weights)):
        width = min(simd.WIDTH, n_children - block * simd.WIDTH)
        for local in range(n_features):
            for lane in range(width):
                counts[local] += abs(weights[block, local, lane]) >= prune
    n_kept, n_entries = 0, 0
    for local in range(n_features):
        n_kept += counts[local] > 0
        n_entries += counts[local]
    kept = np.empty(n_kept, np.int32)
    starts = np.empty(n_kept + 1, np.int32)
    starts[0] = 0
    children = np.empty(n_entries, np.uint8)
    values = np.empty(n_entries, np.float32)
    row = 0
    position = 0
    for local in range(n_features):
        if counts[local] == 0:
            continue
        kept[row] = features[local]
        for child in range(n_children):
            value = weights[child // simd.WIDTH, local, child % simd.WIDTH]
            if abs(value) >= prune:
                children[position] = child
                values[position] = value
                position += 1
        row += 1
        starts[row] = position
    bias = np.empty(n_children, np.float32)
    for child in range(n_children):
        bias[child] = weights[child // simd.WIDTH, n_features, child % simd.WIDTH]
    return kept, starts, children, values, bias
