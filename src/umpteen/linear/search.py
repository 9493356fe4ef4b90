"""Prediction: beam search in every tree, block of rows by block, and the trees' average."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import parallel
from umpteen.kernels.beam import average, beam_search
from umpteen.kernels.topk import frozen_csr
from umpteen.linear.chunks import upper_view
from umpteen.linear.tree import Tree

_BLOCK_CELLS = 4_000_000  # candidates kept at a time per thread: 16 MB
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
    """The `k` best labels and their scores in (0, 1], averaged over the trees."""
    if len(trees) == 1:
        labels, logs = search_tree(trees[0], X, k, search)
        return _ties_by_label(labels, _probabilities(labels, logs))
    votes = [search_tree(tree, X, max(k, _VOTES), search) for tree in trees]
    labels = np.hstack([vote[0] for vote in votes])
    scores = _probabilities(labels, np.hstack([vote[1] for vote in votes]))
    return average(labels, scores, len(trees), k)  # type: ignore[no-any-return]


def best_leaf(tree: Tree, X: csr_matrix, search: Search) -> Answer:
    """The number of each sample's best leaf, and the logarithm of what its way there scores."""
    leaves = tree.hierarchy.layers()[-1]
    if leaves.start == 0:
        return np.zeros(X.shape[0], np.int32), np.zeros(X.shape[0], np.float32)
    best, logs = search_tree(upper_view(tree, leaves), X, 1, search._replace(path_weight=1.0))
    return best[:, 0] + np.int32(leaves.start), search.path_weight * logs[:, 0]


def search_newcomers(newcomers: Tree, tree: Tree, X: csr_matrix, k: int, search: Search) -> Answer:
    """The `k` best labels that stand beside a tree; they are as sure as its best leaf allows."""
    labels, logs = search_tree(newcomers, X, k, search)
    _, way = best_leaf(tree, X, search)
    return _ties_by_label(labels, _probabilities(labels, logs + way[:, None]))


def merged(one: Answer, other: Answer) -> Answer:
    """The best of two answers about different labels, as many as each has."""
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
    """The `k` best labels and the logarithms of their scores."""
    features, n = frozen_csr(X), X.shape[0]

    def rows(first: int) -> Answer:
        return beam_search(  # type: ignore[no-any-return]
            *features, X.shape[1], first, min(first + size, n), tree.arrays, search.beam_width,
            k, search.path_weight, search.logistic,
        )  # fmt: skip

    if n == 0:
        return np.empty((0, k), np.int32), np.empty((0, k), np.float32)
    fair_share = -(-n // parallel.n_threads(search.n_jobs))
    at_root, below = tree.widths
    size = max(1, min(_BLOCK_CELLS // max(at_root, search.beam_width * below), fair_share))
    if n <= size:
        return rows(0)
    parts = parallel.run(rows, range(0, n, size), n_jobs=search.n_jobs)
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
