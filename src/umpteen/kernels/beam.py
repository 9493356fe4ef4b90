"""Beam search through a tree of sparse linear classifiers."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit


class TreeArrays(NamedTuple):
    """A trained tree as the kernels see it.

    Nodes are numbered layer by layer from the root, 0; node `i` has the children
    `first_child[i]` to `first_child[i + 1]`, and numbers from `len(first_child) - 1` on are
    positions in `label_order`. The children of a node are cut into chunks; chunk `c` holds the
    children from `chunk_child[c]` to `chunk_child[c + 1]`. Its weights are grouped by feature:
    rows `chunk_row[c]` to `chunk_row[c + 1]` of `feature` are sorted, and row `r` has the
    entries `entry[r]` to `entry[r + 1]` of `child` (counted from the chunk's first) and
    `weight`. Row `buckets[chunk_bucket[c] + (f >> chunk_shift[c])]` is where feature `f` would
    stand at the earliest.
    """

    first_child: npt.NDArray[np.int32]
    label_order: npt.NDArray[np.int32]
    node_chunk: npt.NDArray[np.int32]
    chunk_child: npt.NDArray[np.int32]
    chunk_row: npt.NDArray[np.int32]
    chunk_bucket: npt.NDArray[np.int32]
    chunk_shift: npt.NDArray[np.int32]
    buckets: npt.NDArray[np.int32]
    feature: npt.NDArray[np.int32]
    entry: npt.NDArray[np.int32]
    child: npt.NDArray[np.uint8]
    weight: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]


@njit(nogil=True, cache=True)
def log_link(margin, logistic):
    """Log-probability of a margin: log sigmoid, or -(1 - margin)^3 below 1 for the hinge."""
    if logistic:
        return -np.log1p(np.exp(-margin)) if margin > -30 else margin
    gap = max(np.float32(0), np.float32(1) - margin)
    return -gap * gap * gap


@njit(nogil=True, cache=True)
def add_chunk(indices, data, tree, chunk, margins):
    """Add the products of one sample with one chunk's weights to the children's margins."""
    shift = tree.chunk_shift[chunk]
    first_bucket = tree.chunk_bucket[chunk]
    for position in range(len(indices)):
        wanted = indices[position]
        bucket = first_bucket + (wanted >> shift)
        for row in range(tree.buckets[bucket], tree.buckets[bucket + 1]):
            if tree.feature[row] >= wanted:
                if tree.feature[row] == wanted:
                    value = data[position]
                    for entry in range(tree.entry[row], tree.entry[row + 1]):
                        margins[tree.child[entry]] += value * tree.weight[entry]
                break


@njit(nogil=True, cache=True)
def _score_children(indices, data, tree, node, score, logistic, candidates):
    """Log-probabilities of all children of a node, given the node's own."""
    first = tree.first_child[node]
    for child in range(first, tree.first_child[node + 1]):
        candidates[child - first] = tree.bias[child - 1]
    for chunk in range(tree.node_chunk[node], tree.node_chunk[node + 1]):
        start, end = tree.chunk_child[chunk] - first, tree.chunk_child[chunk + 1] - first
        add_chunk(indices, data, tree, chunk, candidates[start:end])
    for i in range(tree.first_child[node + 1] - first):
        candidates[i] = score + log_link(candidates[i], logistic)


@njit(nogil=True, cache=True)
def _by_node(nodes, counts, n_nodes):
    """Slots of the beams ordered by node, so that a node's weights are used while in cache."""
    n, width = nodes.shape
    if n == 1:
        return np.arange(counts[0])
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


@njit(nogil=True, cache=True)
def insert(labels, scores, filled, label, score):
    """Put a candidate into a list that is best first, ties to the lowest label."""
    k = len(labels)
    if filled == k:
        worst = scores[k - 1]
        if score < worst or (score == worst and label > labels[k - 1]):
            return filled
        place = k - 1
    else:
        place = filled
        filled += 1
    while place > 0 and (
        score > scores[place - 1] or (score == scores[place - 1] and label < labels[place - 1])
    ):
        labels[place], scores[place] = labels[place - 1], scores[place - 1]
        place -= 1
    labels[place], scores[place] = label, score
    return filled


@njit(nogil=True, cache=True)
def beam_search(indptr, indices, data, first_row, last_row, tree, beam_width, k, logistic):
    """The `k` best labels of some rows with the logarithm of their scores.

    On every layer only the `beam_width` best nodes of each row go on. A score is the product of
    the probabilities on the way from the root. Costs, per row and layer, `beam_width` times the
    row's features, plus a list of `beam_width` times the children of a node.
    """
    n = last_row - first_row
    n_nodes = len(tree.first_child) - 1
    nodes = np.zeros((n, 1), np.int32)
    scores = np.zeros((n, 1), np.float32)
    counts = np.ones(n, np.int32)
    while True:
        at_leaves = tree.first_child[nodes[0, 0]] >= n_nodes
        width = k if at_leaves else beam_width
        n_slots = nodes.shape[1]
        widest = 0
        order = _by_node(nodes, counts, n_nodes)
        for slot in order:
            node = nodes[slot // n_slots, slot % n_slots]
            widest = max(widest, tree.first_child[node + 1] - tree.first_child[node])
        candidates = np.empty((n * n_slots, widest), np.float32)
        for slot in order:
            i, b = slot // n_slots, slot % n_slots
            start, end = indptr[first_row + i], indptr[first_row + i + 1]
            _score_children(
                indices[start:end], data[start:end], tree, nodes[i, b], scores[i, b], logistic,
                candidates[slot],
            )  # fmt: skip
        best = np.full((n, width), -1, np.int32)
        best_scores = np.full((n, width), -np.inf, np.float32)
        for i in range(n):
            filled = 0
            for b in range(counts[i]):
                first = tree.first_child[nodes[i, b]]
                for child in range(first, tree.first_child[nodes[i, b] + 1]):
                    score = candidates[i * n_slots + b, child - first]
                    if filled == width and score < best_scores[i, width - 1]:
                        continue
                    name = tree.label_order[child - n_nodes] if at_leaves else child
                    filled = insert(best[i], best_scores[i], filled, name, score)
            counts[i] = filled
        if at_leaves:
            return best, best_scores
        nodes, scores = best, best_scores
