"""Train labels again, or new labels, in a tree that keeps its shape."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import parallel
from umpteen.linear.chunks import MAX_CHUNK, Chunk, join, split, upper_tree
from umpteen.linear.editing import LabelChunk, flat_tree, with_children
from umpteen.linear.search import Search
from umpteen.linear.training import (
    ChunkTrainer,
    Solver,
    learned_from,
    memberships,
    sent_to,
)
from umpteen.linear.tree import IntArray, Tree
from umpteen.sharding import OnRows, Sharded
from umpteen.trees import grow, label_representation

_NEAREST, _PER_POSITIVE, _DRAWN = 2_000, 10, 1_000  # samples that newcomers learn against


def add_labels(
    newcomers: Tree | None, X: csr_matrix, Y: csr_matrix, ids: IntArray, solver: Solver,
    n_jobs: int | None,
) -> Tree:  # fmt: skip
    """Return a tree without nodes that holds the labels of `Y`'s columns, and those of `newcomers`.

    Every sample is scored for every new label, because the tree, which was trained without them,
    would not send their samples to one leaf. Similar new labels share a chunk. Their negatives are
    the samples that are most like their own, and some random ones.
    """
    rows = label_representation(X, Y, n_jobs=n_jobs)
    columns = _similar(rows, solver.seed, n_jobs)
    shared = (ChunkTrainer(X, solver), X, Y, rows, solver.seed)
    chunks = parallel.map(_learned, columns, shared, n_jobs=n_jobs)
    learned = [
        LabelChunk(ids[own].astype(np.int32), chunk)
        for own, chunk in zip(columns, chunks, strict=True)
    ]
    return flat_tree(learned, X.shape[1], newcomers)


def _learned(
    columns: IntArray, trainer: ChunkTrainer, X: csr_matrix, Y: csr_matrix, rows: csr_matrix,
    seed: int,
) -> Chunk:  # fmt: skip
    member = csr_matrix(Y[:, columns])
    samples = _samples_of(X, csr_matrix(rows[columns].sum(axis=0)), member, seed)
    return trainer.train(X, member, samples, 0, len(columns), int(columns[0]))


def _similar(rows: csr_matrix, seed: int, n_jobs: int | None) -> list[IntArray]:
    """Labels in groups of at most a chunk, by their rows."""
    every = np.arange(rows.shape[0], dtype=np.int32)
    if len(every) <= MAX_CHUNK:
        return [every]
    hierarchy = grow(
        rows, labels=every, branching=len(every), max_leaf=MAX_CHUNK, seed=seed, n_jobs=n_jobs
    )
    leaves = hierarchy.layers()[-1]
    return [np.sort(hierarchy.labels_below(leaf)) for leaf in leaves]


def _samples_of(
    X: csr_matrix, centre: csr_matrix, member: csr_matrix, seed: int
) -> npt.NDArray[np.int32]:
    """The samples with a label of a chunk, those most like its centre, and some others."""
    positive = np.flatnonzero(np.diff(member.indptr))
    similarity = np.asarray((X @ centre.T).todense()).ravel()
    n_nearest = max(_NEAREST, _PER_POSITIVE * len(positive))
    nearest = np.argsort(-similarity, kind="stable")[:n_nearest]
    drawn = np.random.default_rng(seed).permutation(X.shape[0])[:_DRAWN]
    return np.unique(np.concatenate([positive, nearest, drawn])).astype(np.int32)


def refit_labels(
    tree: Tree, X: csr_matrix, Y: csr_matrix, labels: IntArray, solver: Solver, search: Search,
    *, nodes_too: bool = True,
) -> Tree:  # fmt: skip
    """Return the tree with the classifiers of some labels, and of their nodes, trained again.

    As in `train_tree`, but only the chunks with such a child are touched, and in them only those
    children. Scores of other labels move with the nodes above them, and by a rounding error if
    their chunk gets a larger unit.
    """
    hierarchy, chunks, concerned = tree.hierarchy, split(tree), _paths(tree, labels)
    concerned[: 0 if nodes_too else hierarchy.n_nodes] = False
    trainer = ChunkTrainer(X, solver)
    reached = csr_matrix(np.ones((X.shape[0], 1), np.float32))
    for nodes, member in zip(hierarchy.layers(), memberships(Y, hierarchy), strict=True):
        if nodes.start and solver.hard_negatives:
            above = upper_tree(tree, nodes, chunks)
            reached = reached + sent_to(above, X, solver, search.n_jobs)
        samples = learned_from(reached, hierarchy, nodes, solver)
        touched = _touched(tree, concerned, nodes)
        tasks = [
            OnRows(samples[each.node - nodes.start], (each.numbers, each.chunk)) for each in touched
        ]
        shared = (Sharded(X, member), trainer)
        learned = parallel.map(_relearned, tasks, shared, n_jobs=search.n_jobs)
        for target, new in zip(touched, learned, strict=True):
            places = target.numbers - tree.chunk_child[target.chunk]
            chunks[target.chunk] = with_children(chunks[target.chunk], places, new, X.shape[1])
        reached = member[:, nodes.stop : nodes.stop + hierarchy.n_children(nodes)]
    new_tree = join(hierarchy, tree.node_chunk, chunks)
    new_tree.log_trust[:] = np.where(np.isin(hierarchy.label_order, labels), 0, tree.log_trust)
    return new_tree


def _relearned(task: OnRows, sharded: Sharded, trainer: ChunkTrainer) -> Chunk:
    (X, member), samples = sharded.at(task.rows)
    numbers, chunk = task.item
    own = csr_matrix(member[:, numbers])
    return trainer.train(X, own, samples, 0, len(numbers), chunk)


def labels_by_feature(tree: Tree, features: npt.NDArray[np.integer], n_labels: int) -> csr_matrix:
    """Return `(features, labels)`: which labels have a weight of their own for some features."""
    rows = np.flatnonzero(np.isin(tree.feature, features))
    sizes = tree.entry[rows + 1] - tree.entry[rows]
    entries = np.arange(sizes.sum()) + np.repeat(tree.entry[rows] - np.cumsum(sizes) + sizes, sizes)
    rows = np.repeat(rows, sizes)
    chunks = np.searchsorted(tree.chunk_row, rows, side="right") - 1
    places = tree.chunk_child[chunks] + tree.child[entries] - tree.hierarchy.n_nodes
    own = (places >= 0) & (tree.weight[entries] != 0)
    labels = tree.hierarchy.label_order[places[own]]
    at = np.searchsorted(features, tree.feature[rows[own]])
    ones = np.ones(len(labels), np.float32)
    return csr_matrix((ones, (at, labels)), shape=(len(features), n_labels))


class _TouchedChunk(NamedTuple):
    """Children of one chunk that are trained again, by their numbers in the tree."""

    chunk: int
    node: int
    numbers: IntArray


def _touched(tree: Tree, concerned: npt.NDArray[np.bool_], nodes: range) -> list[_TouchedChunk]:
    """The chunks of some nodes that have a child which is concerned."""
    touched = []
    for node in nodes:
        for chunk in range(tree.node_chunk[node], tree.node_chunk[node + 1]):
            first, last = tree.chunk_child[chunk : chunk + 2]
            numbers = first + np.flatnonzero(concerned[first:last])
            if len(numbers):
                touched.append(_TouchedChunk(chunk, node, numbers.astype(np.int32)))
    return touched


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
