"""Beam search through a tree of sparse linear classifiers."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from umpteen.kernels.compiling import inlined, kernel
from umpteen.kernels.sorting import stable_order
from umpteen.kernels.topk import best_first, offer

_MOST_TOGETHER = 512  # samples whose features are looked up together
_SPARSE = 16  # at a node with fewer than one sample in so many, each is looked up by itself


Offsets = npt.NDArray[np.int32] | npt.NDArray[np.int64]


class TreeArrays(NamedTuple):
    """A trained tree as the kernels see it.

    Nodes are numbered layer by layer from the root, 0; node `i` has the children
    `first_child[i]` to `first_child[i + 1]`, and numbers from `len(first_child) - 1` on are
    positions in `label_order`, whose `log_trust` is added to their scores.

    The children of a node are cut into chunks; chunk `c` holds the children from
    `chunk_child[c]` to `chunk_child[c + 1]`. Its weights are grouped by feature: rows
    `chunk_row[c]` to `chunk_row[c + 1]` of `feature` are sorted, and row `r` has the entries
    `entry[r]` to `entry[r + 1]` of `child` (counted from the chunk's first) and `weight`, a
    whole number in units of `chunk_scale[c]`. Row
    `buckets[chunk_bucket[c] + (f >> chunk_shift[c])]` is where feature `f` would stand at the
    earliest. Offsets (`chunk_row`, `chunk_bucket`, `buckets`, `entry`) have 64 bits in a tree that
    needs them, and 32 in others.
    """

    first_child: npt.NDArray[np.int32]
    label_order: npt.NDArray[np.int32]
    node_chunk: npt.NDArray[np.int32]
    chunk_child: npt.NDArray[np.int32]
    chunk_row: Offsets
    chunk_bucket: Offsets
    chunk_shift: npt.NDArray[np.int32]
    chunk_scale: npt.NDArray[np.float32]
    buckets: Offsets
    feature: npt.NDArray[np.int32]
    entry: Offsets
    child: npt.NDArray[np.uint8]
    weight: npt.NDArray[np.int16]
    bias: npt.NDArray[np.float32]
    log_trust: npt.NDArray[np.float32]


@inlined
def log_link(margin, logistic):
    """Return the logarithm of the probability that a margin stands for.

    Logistic regression: log sigmoid. Squared hinge, which knows no probabilities: a cubic fall
    below the margin 1, and a slight slope up to 2 that keeps the order among the certain.
    """
    if logistic:
        return -np.log1p(np.exp(-margin)) if margin > -30 else margin
    below_one = max(np.float32(0), np.float32(1) - margin)
    below_two = max(np.float32(0), np.float32(2) - margin)
    return -below_one * below_one * below_one - np.float32(0.01) * below_two


@inlined
def _add_chunk(indices, data, tree, chunk, margins):
    """Add the products of one sample with one chunk's weights to the children's margins."""
    buckets, features = tree.buckets, tree.feature
    ends, children, weights = tree.entry, tree.child, tree.weight
    shift, scale = tree.chunk_shift[chunk], tree.chunk_scale[chunk]
    first_bucket = tree.chunk_bucket[chunk]
    for position in range(len(indices)):
        wanted = indices[position]
        bucket = first_bucket + (wanted >> shift)
        for row in range(buckets[bucket], buckets[bucket + 1]):
            if features[row] >= wanted:
                if features[row] == wanted:
                    value = data[position] * scale
                    for entry in range(np.uint64(ends[row]), np.uint64(ends[row + 1])):
                        margins[children[entry]] += value * np.float32(weights[entry])
                break


@inlined
def _add_chunk_by_table(indices, data, tree, chunk, row_of, margins):
    """`_add_chunk` with a table: the row of each feature, counted from 1, or 0."""
    ends, children, weights = tree.entry, tree.child, tree.weight
    scale = tree.chunk_scale[chunk]
    for position in range(len(indices)):
        row = row_of[indices[position]]
        if row > 0:
            value = data[position] * scale
            for entry in range(np.uint64(ends[row - 1]), np.uint64(ends[row])):
                margins[children[entry]] += value * np.float32(weights[entry])


class Lookups(NamedTuple):
    """The entries of several samples by feature, and scratch memory to look them up in a chunk.

    Entry `i` stands at `place[i]` of the matrix, and is of sample `owner[i]`. `member` are the
    places of the samples at one node, and `row` their rows of candidates. `start` says where the
    next of their features begins, which is `feature`, and can only be in the rows `low` to `high`
    of the chunk.
    """

    place: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int32]
    member: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int32]
    low: Offsets
    high: Offsets


@inlined
def new_lookups(indptr, indices, first_row, n, tree):
    """Return the lookups of `n` samples; empty ones if these are too few or too many."""
    first = indptr[first_row]
    size = indptr[first_row + n] - first if 1 < n <= _MOST_TOGETHER else 0
    place, owner = stable_order(indices[first : first + size]), np.empty(size, np.int32)
    sample = np.empty(size, np.int32)
    for row in range(n if size else 0):
        for i in range(indptr[first_row + row], indptr[first_row + row + 1]):
            sample[i - first] = row
    for i in range(size):
        owner[i] = sample[place[i]]
        place[i] += first
    return Lookups(
        place, owner, np.empty(size, np.int64), np.empty(size, np.int64),
        np.empty(size + 1, np.int64), np.empty(size, np.int32),
        np.empty(size, tree.buckets.dtype), np.empty(size, tree.buckets.dtype),
    )  # fmt: skip


@inlined
def _gather(samples_slots, rows, n_slots, row_of, lookups):
    """Write the entries of the samples in some slots to `lookups`; return how many they are."""
    place, owner, member, targets = lookups.place, lookups.owner, lookups.member, lookups.row
    n_members = 0
    for i in range(len(samples_slots)):
        row_of[samples_slots[i] // n_slots] = rows[i]
    for i in range(len(place)):
        if row_of[owner[i]] >= 0:
            member[n_members], targets[n_members] = place[i], row_of[owner[i]]
            n_members += 1
    for slot in samples_slots:
        row_of[slot // n_slots] = -1
    return n_members


@inlined
def _add_chunk_to_all(indices, data, lookups, n_members, tree, chunk, left, candidates):
    """`_add_chunk` for several samples, whose entries are the members in `lookups`.

    A feature that several of them have is looked up once. All buckets are read in one loop, then
    all features, then the weights: so the processor waits for many of them at the same time.
    """
    buckets, features = tree.buckets, tree.feature
    ends, children, weights = tree.entry, tree.child, tree.weight
    member, rows, start, wanted = lookups.member, lookups.row, lookups.start, lookups.feature
    low, high = lookups.low, lookups.high
    shift, scale = tree.chunk_shift[chunk], tree.chunk_scale[chunk]
    first_bucket = tree.chunk_bucket[chunk]
    n_wanted = 0
    for i in range(n_members):
        feature = indices[member[i]]
        if n_wanted == 0 or wanted[n_wanted - 1] != feature:
            start[n_wanted] = i
            wanted[n_wanted] = feature
            n_wanted += 1
    start[n_wanted] = n_members
    for i in range(n_wanted):
        bucket = first_bucket + (wanted[i] >> shift)
        low[i], high[i] = buckets[bucket], buckets[bucket + 1]
    for i in range(n_wanted):
        row = low[i]
        while row < high[i] and features[row] < wanted[i]:
            row += 1
        low[i] = row if row < high[i] and features[row] == wanted[i] else -1
    for i in range(n_wanted):
        row = low[i]
        if row >= 0:
            first, last = np.uint64(ends[row]), np.uint64(ends[row + 1])
            for each in range(start[i], start[i + 1]):
                value, row = data[member[each]] * scale, rows[each]
                for entry in range(first, last):
                    candidates[row, left + children[entry]] += value * np.float32(weights[entry])


@inlined
def _by_node(nodes, counts, n_nodes):
    """Slots of the beams ordered by node, so that a node's weights are used while in cache."""
    n, width = nodes.shape
    if n == 1:
        alone = np.empty(counts[0], np.int64)
        for slot in range(counts[0]):
            alone[slot] = slot
        return alone
    first = np.zeros(n_nodes + 1, np.int64)
    for i in range(n):
        for slot in range(counts[i]):
            first[nodes[i, slot] + 1] += 1
    for node in range(n_nodes):
        first[node + 1] += first[node]
    order = np.empty(first[n_nodes], np.int64)
    for i in range(n):
        for slot in range(counts[i]):
            order[first[nodes[i, slot]]] = i * width + slot
            first[nodes[i, slot]] += 1
    return order


@inlined
def _score_slots(
    indptr, indices, data, first_row, tree, nodes, scores, order, rows, lookups, row_of, weight,
    logistic, candidates,
):  # fmt: skip
    """Log-probabilities of the children of every slot's node, one node after the other.

    `order` are slots by node, and `rows` which row of `candidates` each of them gets.
    """
    first_child, node_chunk, biases = tree.first_child, tree.node_chunk, tree.bias
    chunk_row, chunk_child, features = tree.chunk_row, tree.chunk_child, tree.feature
    n, n_slots = nodes.shape
    candidates_of = np.full(n if len(lookups.place) else 0, -1, np.int64)  # at one node
    begin = 0
    while begin < len(order):
        node = nodes[order[begin] // n_slots, order[begin] % n_slots]
        end = begin
        n_entries = 0
        while end < len(order) and nodes[order[end] // n_slots, order[end] % n_slots] == node:
            row = first_row + order[end] // n_slots
            n_entries += indptr[row + 1] - indptr[row]
            end += 1
        first = first_child[node]
        n_children = first_child[node + 1] - first
        for position in range(begin, end):
            for i in range(n_children):
                candidates[rows[position], i] = biases[first - 1 + i]
        for chunk in range(node_chunk[node], node_chunk[node + 1]):
            low, high = chunk_row[chunk], chunk_row[chunk + 1]
            left, right = chunk_child[chunk] - first, chunk_child[chunk + 1] - first
            if len(lookups.place) > 0 and (end - begin) * _SPARSE >= n:
                n_members = _gather(
                    order[begin:end], rows[begin:end], n_slots, candidates_of, lookups
                )
                _add_chunk_to_all(indices, data, lookups, n_members, tree, chunk, left, candidates)
                continue
            use_table = len(row_of) > 0 and n_entries > 2 * (high - low)
            if use_table:
                for row in range(low, high):
                    row_of[features[row]] = row + 1
            for position in range(begin, end):
                row = first_row + order[position] // n_slots
                x, v = indices[indptr[row] : indptr[row + 1]], data[indptr[row] : indptr[row + 1]]
                margins = candidates[rows[position], left:right]
                if use_table:
                    _add_chunk_by_table(x, v, tree, chunk, row_of, margins)
                else:
                    _add_chunk(x, v, tree, chunk, margins)
            if use_table:
                for row in range(low, high):
                    row_of[features[row]] = 0
        for position in range(begin, end):
            slot, row = order[position], rows[position]
            score = scores[slot // n_slots, slot % n_slots]
            for i in range(n_children):
                candidates[row, i] = score + weight * log_link(candidates[row, i], logistic)
        begin = end


@inlined
def _widest(nodes, counts, first_child):
    widest = 0
    for i in range(len(nodes)):
        for slot in range(counts[i]):
            widest = max(widest, first_child[nodes[i, slot] + 1] - first_child[nodes[i, slot]])
    return widest


@kernel
def beam_search(
    indptr, indices, data, n_features, first_row, last_row, tree, beam_width, k, path_weight,
    logistic, n_cells,
):  # fmt: skip
    """Return the `k` best labels of some rows and the logarithms of their scores, best first.

    On every layer only the `beam_width` best nodes of a row go on. A score is the label's own
    probability and trust, times the probabilities on its path raised to `path_weight`. Costs,
    per row and layer, `beam_width` times the row's features. On each layer, one node after the
    other is visited, with all rows that go there, so that its weights are read once. About
    `n_cells` scores at most are held at a time.
    """
    n = last_row - first_row
    row_of = np.zeros(n_features if n > 1 else 0, tree.buckets.dtype)
    lookups = new_lookups(indptr, indices, first_row, n, tree)
    first_child, label_order, log_trust = tree.first_child, tree.label_order, tree.log_trust
    n_nodes = len(first_child) - 1
    nodes = np.zeros((n, 1), np.int32)
    scores = np.zeros((n, 1), np.float32)
    counts = np.empty(n, np.int64)
    for i in range(n):
        counts[i] = 1
    while True:
        at_leaves = first_child[nodes[0, 0]] >= n_nodes
        width = k if at_leaves else min(beam_width, n_nodes)
        weight = np.float32(1) if at_leaves else np.float32(path_weight)
        n_slots = nodes.shape[1]
        widest = _widest(nodes, counts, first_child)
        order = _by_node(nodes, counts, n_nodes)
        together = max(1, min(len(order), n_cells // max(1, widest)))
        candidates, rows = np.empty((together, widest), np.float32), np.empty(together, np.int64)
        for row in range(together):
            rows[row] = row
        best = np.empty((n, width), np.int32)
        best_scores = np.empty((n, width), np.float32)
        for i in range(n):
            counts[i] = 0
        for start in range(0, len(order), together):
            part = order[start : start + together]
            _score_slots(
                indptr, indices, data, first_row, tree, nodes, scores, part, rows, lookups, row_of,
                weight, logistic, candidates,
            )  # fmt: skip
            for row in range(len(part)):
                i, node = part[row] // n_slots, nodes[part[row] // n_slots, part[row] % n_slots]
                row_best, row_scores, kept = best[i], best_scores[i], counts[i]
                first = first_child[node]
                for child in range(first, first_child[node + 1]):
                    score = candidates[row, child - first]
                    if at_leaves:
                        score += log_trust[child - n_nodes]
                    if kept == width and score < row_scores[0]:
                        continue
                    name = label_order[child - n_nodes] if at_leaves else child
                    kept = offer(row_best, row_scores, kept, name, score)
                counts[i] = kept
        for i in range(n):
            best_first(best[i], best_scores[i], counts[i])
        if at_leaves:
            return best, best_scores
        nodes, scores = best, best_scores


@kernel
def average(labels, scores, n_trees, k):
    """Return the `k` best labels by mean score over the trees; a silent tree counts as zero.

    `labels` and `scores` (samples, trees * best) stand tree by tree, -1 where there is none.
    """
    n, width = labels.shape
    best = np.empty((n, k), np.int32)
    best_scores = np.empty((n, k), np.float32)
    for i in range(n):
        order, row_best, row_scores = stable_order(labels[i]), best[i], best_scores[i]
        kept = 0
        position = 0
        while position < width:
            label = labels[i, order[position]]
            total = np.float32(0)
            while position < width and labels[i, order[position]] == label:
                total += scores[i, order[position]]
                position += 1
            if label >= 0:
                kept = offer(row_best, row_scores, kept, label, total / np.float32(n_trees))
        best_first(row_best, row_scores, kept)
    return best, best_scores
