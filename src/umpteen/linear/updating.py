"""Learn labels anew, or new labels, in a tree that stays as it is."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import parallel
from umpteen.linear.chunks import MAX_CHUNK, Packed, join, split
from umpteen.linear.editing import Newcomers, with_children, with_labels
from umpteen.linear.search import Search, search_tree
from umpteen.linear.training import (
    ChunkTrainer,
    Solver,
    columns_of,
    memberships,
    sent_to,
    upper_part,
)
from umpteen.linear.tree import IntArray, Tree

_CROWDED = 2  # times `max_leaf`: leaves that are fuller take no new labels


def add_labels(
    tree: Tree, X: csr_matrix, Y: csr_matrix, ids: IntArray, solver: Solver, search: Search,
    max_leaf: int,
) -> Tree:  # fmt: skip
    """The tree with the labels of `Y`'s columns, whose `ids` have no place in it yet.

    A label goes to the leaf that its samples reach best, and learns there from its samples
    against all others that are sent to that leaf: what the tree would confuse it with.
    """
    sent = _leaves_of(tree, X, max(solver.hard_negatives, search.beam_width), search)
    leaves = _choose_leaves(Y, sent, np.diff(_leaf_starts(tree)), _CROWDED * max_leaf)
    trainer, reached = ChunkTrainer(X, solver), columns_of(sent)
    first_leaf = tree.hierarchy.layers()[-1].start

    def newcomers(leaf_and_labels: tuple[int, IntArray]) -> Newcomers:
        leaf, labels = leaf_and_labels
        member = csr_matrix(Y[:, labels])
        samples = _with_negatives(reached[leaf], member)
        chunk = trainer.train(samples, member, 0, len(labels), int(labels[0]))
        return Newcomers(ids[labels].astype(np.int32), chunk)

    parts = list(_parts(leaves))
    learned = parallel.run(newcomers, parts, n_jobs=search.n_jobs)
    added: dict[int, list[Newcomers]] = {}
    for (leaf, _), part in zip(parts, learned, strict=True):
        added.setdefault(first_leaf + leaf, []).append(part)
    return with_labels(tree, added, X.shape[1])


def refit_labels(
    tree: Tree, X: csr_matrix, Y: csr_matrix, labels: IntArray, solver: Solver, search: Search,
    max_leaf: int,
) -> Tree:  # fmt: skip
    """The tree with the classifiers of some labels, and of the nodes above them, learned anew.

    As in `train_tree`, but only the chunks with such a child are touched, and in them only those
    children. Labels without a place, since they had no samples so far, are added.
    """
    hierarchy, chunks, concerned = tree.hierarchy, split(tree), _paths(tree, labels)
    trainer = ChunkTrainer(X, solver)
    reached = csr_matrix(np.ones((X.shape[0], 1), np.float32))
    for nodes, member in zip(hierarchy.layers(), memberships(Y, hierarchy), strict=True):
        if nodes.start and solver.hard_negatives:
            above = _upper_tree(tree, chunks, nodes)
            reached = reached + sent_to(above, X, solver, search.n_jobs)
        samples = columns_of(reached)
        touched = _touched(tree, concerned, nodes)
        learned = parallel.run(
            lambda part, samples=samples, member=member, nodes=nodes: trainer.train(  # type: ignore[misc]
                samples[part.node - nodes.start], csr_matrix(member[:, part.numbers]), 0,
                len(part.numbers), part.chunk,
            ),
            touched,
            n_jobs=search.n_jobs,
        )  # fmt: skip
        for part, new in zip(touched, learned, strict=True):
            places = part.numbers - tree.chunk_child[part.chunk]
            chunks[part.chunk] = with_children(chunks[part.chunk], places, new, X.shape[1])
        reached = member[:, nodes.stop : nodes.stop + hierarchy.n_children(nodes)]
    new_tree = join(hierarchy, tree.node_chunk, chunks)
    new_tree.log_trust[:] = np.where(np.isin(hierarchy.label_order, labels), 0, tree.log_trust)
    lost = np.setdiff1d(np.intersect1d(labels, Y.indices), hierarchy.label_order)
    if len(lost) == 0:
        return new_tree
    return add_labels(new_tree, X, csr_matrix(Y[:, lost]), lost, solver, search, max_leaf)


class _Part(NamedTuple):
    """Children of one chunk that learn anew, by their numbers in the tree."""

    chunk: int
    node: int
    numbers: IntArray


def _touched(tree: Tree, concerned: npt.NDArray[np.bool_], nodes: range) -> list[_Part]:
    """The chunks of some nodes that have a child which is concerned."""
    parts = []
    for node in nodes:
        for chunk in range(tree.node_chunk[node], tree.node_chunk[node + 1]):
            first, last = tree.chunk_child[chunk : chunk + 2]
            numbers = first + np.flatnonzero(concerned[first:last])
            if len(numbers):
                parts.append(_Part(chunk, node, numbers.astype(np.int32)))
    return parts


def _upper_tree(tree: Tree, chunks: Sequence[Packed], leaves: range) -> Tree:
    """The tree above a layer, whose nodes take the place of labels."""
    node_chunk = tree.node_chunk[: leaves.start + 1]
    return join(upper_part(tree.hierarchy, leaves), node_chunk, chunks[: node_chunk[-1]])


def _paths(tree: Tree, labels: IntArray) -> npt.NDArray[np.bool_]:
    """Which tree numbers are some labels or lead to them."""
    hierarchy = tree.hierarchy
    marked = np.zeros(hierarchy.n_nodes + len(hierarchy.label_order), bool)
    numbers = np.flatnonzero(np.isin(hierarchy.label_order, labels)) + hierarchy.n_nodes
    parents = hierarchy.parents()
    while len(numbers) and numbers[0] > 0:
        marked[numbers] = True
        numbers = np.unique(parents[numbers])
    return marked


def _leaf_starts(tree: Tree) -> IntArray:
    leaves = tree.hierarchy.layers()[-1]
    return tree.hierarchy.first_child[leaves.start : leaves.stop + 1]


def _leaves_of(tree: Tree, X: csr_matrix, k: int, search: Search) -> csr_matrix:
    """(samples, leaves): the `k` best leaves of each sample and their scores."""
    leaves = tree.hierarchy.layers()[-1]
    if leaves.start == 0:
        return csr_matrix(np.ones((X.shape[0], 1), np.float32))
    above = _upper_tree(tree, split(tree), leaves)
    k = min(k, len(leaves))
    best, logs = search_tree(above, X, k, search._replace(beam_width=2 * k, path_weight=1.0))
    rows, ranks = np.nonzero(best >= 0)
    scores = np.exp(np.maximum(logs[rows, ranks], -60))
    return csr_matrix((scores, (rows, best[rows, ranks])), shape=(X.shape[0], len(leaves)))


def _choose_leaves(Y: csr_matrix, sent: csr_matrix, sizes: IntArray, most: int) -> IntArray:
    """For each new label the leaf with the highest total score that is not crowded."""
    totals, sizes = csr_matrix(Y.T @ sent), sizes.copy()
    chosen = np.empty(Y.shape[1], np.int32)
    for label in range(Y.shape[1]):
        row = slice(totals.indptr[label], totals.indptr[label + 1])
        ranked = totals.indices[row][np.argsort(-totals.data[row], kind="stable")]
        free = ranked[sizes[ranked] < most]
        chosen[label] = free[0] if len(free) else np.argmin(sizes)
        sizes[chosen[label]] += 1
    return chosen


def _parts(leaves: IntArray) -> Iterable[tuple[int, IntArray]]:
    """Leaves and the new labels in them, as many as a chunk can hold."""
    for leaf in np.unique(leaves):
        labels = np.flatnonzero(leaves == leaf).astype(np.int32)
        for start in range(0, len(labels), MAX_CHUNK):
            yield int(leaf), labels[start : start + MAX_CHUNK]


def _with_negatives(reached: IntArray, member: csr_matrix) -> IntArray:
    """The samples of a leaf: who reaches it, and who has a label that is new there.

    If some label would then have no sample against it, all samples are taken.
    """
    samples = np.union1d(reached, np.flatnonzero(np.diff(member.indptr))).astype(np.int32)
    n_positive = np.asarray(member.sum(axis=0)).ravel()
    if (n_positive >= len(samples)).any():
        return np.arange(member.shape[0], dtype=np.int32)
    return samples
