"""Prediction: beam search in every tree, block of rows by block, and the trees' average."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import parallel
from umpteen.kernels.beam import average, beam_search
from umpteen.kernels.candidates import score_paths
from umpteen.kernels.topk import frozen_csr
from umpteen.linear.chunks import upper_view
from umpteen.linear.tree import Tree
from umpteen.sharding import OnRows, Sharded

_BLOCK_CELLS = 4_000_000  # scores of candidates kept at a time per thread: 16 MB
_BEAM_CELLS = 1_000_000  # of beams, and of scores in a beam search, per thread: 4 MB each
_VOTES = 20  # labels that each tree of an ensemble names at least

_LEAST_LOG = np.float32(-87)  # its exponential is the smallest normal float32

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]
Answer = tuple[IntArray, FloatArray]


class Search(NamedTuple):
    """How trees are searched."""

    beam_width: int
    path_weight: float
    logistic: bool
    n_jobs: int | None


def search_trees(trees: Sequence[Tree], X: csr_matrix, k: int, search: Search) -> Answer:
    """Return the `k` best labels and their scores in (0, 1], averaged over the trees."""
    if len(trees) == 1:
        labels, logs = search_tree(trees[0], X, k, search)
        return _ties_by_label(labels, _probabilities(labels, logs))
    votes = [search_tree(tree, X, max(k, _VOTES), search) for tree in trees]
    labels = np.hstack([vote[0] for vote in votes])
    scores = _probabilities(labels, np.hstack([vote[1] for vote in votes]))
    return average(labels, scores, len(trees), k)  # type: ignore[no-any-return]


def best_leaf(tree: Tree, X: csr_matrix, search: Search) -> Answer:
    """Return the number of each sample's best leaf, and the logarithm of its path's score."""
    leaves = tree.hierarchy.layers()[-1]
    if leaves.start == 0:
        return np.zeros(X.shape[0], np.int32), np.zeros(X.shape[0], np.float32)
    best, logs = search_tree(upper_view(tree, leaves), X, 1, search._replace(path_weight=1.0))
    return best[:, 0] + np.int32(leaves.start), search.path_weight * logs[:, 0]


def search_newcomers(newcomers: Tree, tree: Tree, X: csr_matrix, k: int, search: Search) -> Answer:
    """Return the `k` best labels outside a tree; they are as sure as its best leaf allows."""
    labels, logs = search_tree(newcomers, X, k, search)
    _, path_logs = best_leaf(tree, X, search)
    return _ties_by_label(labels, _probabilities(labels, logs + path_logs[:, None]))


def merged(one: Answer, other: Answer) -> Answer:
    """Return the best of two answers about different labels, as many as each has."""
    labels, scores = (np.hstack(pair) for pair in zip(one, other, strict=True))
    order = np.lexsort((labels, -scores), axis=1)[:, : one[0].shape[1]]
    return np.take_along_axis(labels, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _probabilities(labels: IntArray, logs: FloatArray) -> FloatArray:
    """Never zero, so that the least likely label still differs from none."""
    return np.where(labels < 0, logs, np.exp(np.maximum(logs, _LEAST_LOG)))


def _ties_by_label(labels: IntArray, scores: FloatArray) -> Answer:
    """Put labels in order whose scores are equal although their logarithms were not."""
    wrong = (scores[:, 1:] == scores[:, :-1]) & (labels[:, 1:] < labels[:, :-1])
    if (wrong & (labels[:, 1:] >= 0)).any():
        order = np.lexsort((labels, -scores), axis=1)
        return np.take_along_axis(labels, order, axis=1), np.take_along_axis(scores, order, axis=1)
    return labels, scores


def search_tree(tree: Tree, X: csr_matrix, k: int, search: Search) -> Answer:
    """Return the `k` best labels and the logarithms of their scores."""
    n = X.shape[0]
    if n == 0:
        return np.empty((0, k), np.int32), np.empty((0, k), np.float32)
    fair_share = -(-n // parallel.width(search.n_jobs))
    in_beam = min(search.beam_width, tree.hierarchy.n_nodes)
    size = max(1, min(_BEAM_CELLS // (4 * in_beam + 2 * max(in_beam, k)), fair_share))
    blocks = [OnRows(range(first, min(first + size, n))) for first in range(0, n, size)]
    shared = (Sharded(X), tree, k, search)
    if len(blocks) == 1:
        return _found(blocks[0], *shared)
    answers = parallel.map(_found, blocks, shared, n_jobs=search.n_jobs)
    labels, logs = zip(*answers, strict=True)
    return np.concatenate(labels), np.concatenate(logs)


def _found(task: OnRows, sharded: Sharded, tree: Tree, k: int, search: Search) -> Answer:
    (X,), rows = sharded.at(task.rows)
    return beam_search(  # type: ignore[no-any-return]
        *frozen_csr(X), X.shape[1], rows.start, rows.stop, tree.arrays, search.beam_width, k,
        search.path_weight, search.logistic, _BEAM_CELLS,
    )  # fmt: skip


def score_candidates(
    trees: Sequence[Tree], X: csr_matrix, candidates: csr_matrix, search: Search
) -> FloatArray:
    """Return the score of every entry of `candidates`, as if the beam were as wide as the trees.

    A label that has no place in a tree counts zero there.
    """
    total = np.zeros(candidates.nnz, np.float32)
    for tree in trees:
        numbers = _numbers_of(tree, candidates.shape[1])[candidates.indices]
        placed = numbers >= 0
        starts = np.concatenate([[0], np.cumsum(placed)])[candidates.indptr]
        logs = np.zeros(candidates.nnz, np.float32)
        logs[placed] = _score_numbers(tree, X, starts, numbers[placed], search)
        total += _probabilities(numbers, logs)
    return total / np.float32(len(trees))


def _numbers_of(tree: Tree, n_labels: int) -> IntArray:
    """The number of each label in the tree, -1 where it has no place."""
    order, numbers = tree.hierarchy.label_order, np.full(n_labels, -1, np.int32)
    numbers[order] = tree.hierarchy.n_nodes + np.arange(len(order))
    return numbers


def _score_numbers(
    tree: Tree, X: csr_matrix, starts: npt.NDArray[np.int64], numbers: IntArray, search: Search
) -> FloatArray:
    """Logarithms of scores; row i asks for the labels `numbers[starts[i]:starts[i + 1]]`."""
    features, parents = frozen_csr(X), tree.hierarchy.parents()
    layers, logs = tree.hierarchy.layers(), np.empty(len(numbers), np.float32)

    def score(rows: tuple[int, int]) -> FloatArray:
        first, last = rows
        paths = [numbers[starts[first] : starts[last]]]
        for _ in layers:
            paths.append(parents[paths[-1]])
        return score_paths(  # type: ignore[no-any-return]
            *features, X.shape[1], first, tree.arrays, starts[first : last + 1] - starts[first],
            np.array(paths[::-1]), search.path_weight, search.logistic,
        )  # fmt: skip

    at_root, below = tree.widths
    nodes = np.minimum(np.diff(starts), len(layers[-1]))
    fair_share = -(-X.shape[0] // parallel.n_threads(search.n_jobs))
    blocks = list(_blocks(np.maximum(at_root, nodes * below), fair_share))
    for (first, last), scores in zip(
        blocks, parallel.run(score, blocks, n_jobs=search.n_jobs), strict=True
    ):
        logs[starts[first] : starts[last]] = scores
    return logs


def _blocks(cells: npt.NDArray[np.integer], most_rows: int) -> Iterator[tuple[int, int]]:
    """Rows from first to before last whose list, as wide as the widest needs, is not too long."""
    first = widest = 0
    for row, cells_here in enumerate(cells.tolist()):
        widest = max(widest, cells_here)
        too_long = (row - first + 1) * widest > _BLOCK_CELLS
        if row > first and (too_long or row - first == most_rows):
            yield first, row
            first, widest = row, cells_here
    if first < len(cells):
        yield first, len(cells)
