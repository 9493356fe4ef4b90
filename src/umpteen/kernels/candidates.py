"""The scores of chosen labels in a tree of sparse linear classifiers."""

import numpy as np

from umpteen.kernels.beam import _by_node, _score_slots, _widest, new_lookups
from umpteen.kernels.compiling import inlined, kernel


@inlined
def _distinct(starts, nodes, n_nodes):
    """Each entry's place among the different nodes of its row, and how many there are per row."""
    place = np.empty(len(nodes), np.int32)
    counts = np.zeros(len(starts) - 1, np.int64)
    place_of = np.full(n_nodes, -1, np.int32)
    for i in range(len(counts)):
        for entry in range(starts[i], starts[i + 1]):
            if place_of[nodes[entry]] < 0:
                place_of[nodes[entry]] = counts[i]
                counts[i] += 1
            place[entry] = place_of[nodes[entry]]
        for entry in range(starts[i], starts[i + 1]):
            place_of[nodes[entry]] = -1
    return place, counts


@inlined
def _step(
    indptr, indices, data, first_row, tree, starts, parents, children, lookups, row_of, weight,
    logistic, logs,
):  # fmt: skip
    """Add to `logs` what each entry's step from its parent to its child scores."""
    n_nodes = len(tree.first_child) - 1
    place, counts = _distinct(starts, parents, n_nodes)
    n, n_slots = len(counts), max(1, counts.max())
    nodes = np.zeros((n, n_slots), np.int32)
    scores = np.zeros((n, n_slots), np.float32)
    for i in range(n):
        for entry in range(starts[i], starts[i + 1]):
            nodes[i, place[entry]] = parents[entry]
            scores[i, place[entry]] = logs[entry]
    table = np.empty((n * n_slots, _widest(nodes, counts, tree.first_child)), np.float32)
    order = _by_node(nodes, counts, n_nodes)
    _score_slots(
        indptr, indices, data, first_row, tree, nodes, scores, order, order, lookups, row_of,
        weight, logistic, table,
    )  # fmt: skip
    for i in range(n):
        for entry in range(starts[i], starts[i + 1]):
            first = tree.first_child[parents[entry]]
            logs[entry] = table[i * n_slots + place[entry], children[entry] - first]


@kernel
def score_paths(
    indptr, indices, data, n_features, first_row, tree, starts, paths, path_weight, logistic
):  # fmt: skip
    """Return logarithms of the scores of the labels that the columns of `paths` end at.

    `paths` (layers + 1, entries) are numbers from the root down to labels; entries `starts[i]` to
    `starts[i + 1]` belong to row `first_row + i`. The bits are those of `beam_search`. A node is
    visited once for all rows that go through it. Costs, per row, its features times its different
    nodes, plus a list of the rows times the most nodes of one of them times the children of a node.
    """
    n_layers, n_entries = len(paths) - 1, paths.shape[1]
    logs = np.zeros(n_entries, np.float32)
    row_of = np.zeros(n_features if len(starts) > 2 else 0, tree.buckets.dtype)
    lookups = new_lookups(indptr, indices, first_row, len(starts) - 1, tree)
    for layer in range(n_layers):
        weight = np.float32(1) if layer == n_layers - 1 else np.float32(path_weight)
        _step(
            indptr, indices, data, first_row, tree, starts, paths[layer], paths[layer + 1],
            lookups, row_of, weight, logistic, logs,
        )  # fmt: skip
    for entry in range(n_entries):
        logs[entry] += tree.log_trust[paths[n_layers, entry] - (len(tree.first_child) - 1)]
    return logs
