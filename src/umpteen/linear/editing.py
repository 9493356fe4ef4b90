"""Trees with labels added, removed or replaced; what is not concerned keeps its bits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from umpteen.linear.chunks import Chunk, Packed, join, packed, split, unpacked
from umpteen.linear.tree import IntArray, Tree
from umpteen.trees import Hierarchy


class Newcomers(NamedTuple):
    """Labels that are new in one leaf, with their weights."""

    labels: IntArray
    chunk: Chunk


def with_labels(tree: Tree, added: Mapping[int, Sequence[Newcomers]], n_features: int) -> Tree:
    """The tree with new labels at the end of their leaves, in chunks of their own."""
    hierarchy, chunks = tree.hierarchy, split(tree)
    n_new = np.zeros(hierarchy.n_nodes, np.int32)
    n_chunks = n_new.copy()
    for leaf in sorted(added, reverse=True):
        at = tree.node_chunk[leaf + 1]
        chunks[at:at] = [packed(part.chunk, n_features) for part in added[leaf]]
        n_new[leaf] = sum(len(part.labels) for part in added[leaf])
        n_chunks[leaf] = len(added[leaf])
    places = np.repeat(hierarchy.first_child[1:] - hierarchy.n_nodes, n_new)
    labels = [part.labels for leaf in sorted(added) for part in added[leaf]]
    order = np.insert(hierarchy.label_order, places, np.concatenate(labels)).astype(np.int32)
    grown = Hierarchy(hierarchy.first_child + _before(n_new), order)
    new = join(grown, tree.node_chunk + _before(n_chunks), chunks)
    return replace(new, log_trust=np.insert(tree.log_trust, places, 0).astype(np.float32))


def without_labels(tree: Tree, labels: npt.NDArray[np.integer], n_features: int) -> Tree:
    """The tree without some labels and their weights; a leaf may end up empty."""
    hierarchy, chunks = tree.hierarchy, split(tree)
    gone = np.zeros(len(hierarchy.label_order) + hierarchy.n_nodes, bool)
    gone[hierarchy.n_nodes :] = np.isin(hierarchy.label_order, labels)
    for chunk in np.unique(np.searchsorted(tree.chunk_child, np.flatnonzero(gone), "right") - 1):
        mine = gone[tree.chunk_child[chunk] : tree.chunk_child[chunk + 1]]
        chunks[chunk] = _without_children(chunks[chunk], mine, n_features)
    sizes = np.diff(hierarchy.first_child)
    parent = np.repeat(np.arange(hierarchy.n_nodes), sizes)
    n_gone = np.bincount(parent[gone[1:]], minlength=hierarchy.n_nodes).astype(np.int32)
    kept = ~gone[hierarchy.n_nodes :]
    smaller = Hierarchy(hierarchy.first_child - _before(n_gone), hierarchy.label_order[kept])
    return replace(join(smaller, tree.node_chunk, chunks), log_trust=tree.log_trust[kept])


def with_children(chunk: Packed, children: IntArray, new: Chunk, n_features: int) -> Packed:
    """A chunk whose `children`, counted from its first, have the weights of `new`."""
    old = unpacked(chunk)
    kept = ~np.isin(old.child, children)
    bias = old.bias.copy()
    bias[children] = new.bias
    merged = _grouped(
        np.append(_features(old)[kept], _features(new)),
        np.append(old.child[kept], children[new.child]),
        np.append(old.weight[kept], new.weight),
        bias,
    )
    return packed(merged, n_features)


def _without_children(chunk: Packed, gone: npt.NDArray[np.bool_], n_features: int) -> Packed:
    kept = ~gone[chunk.child]
    number = np.cumsum(~gone) - 1
    left = _grouped(
        _features(chunk)[kept], number[chunk.child[kept]], chunk.weight[kept], chunk.bias[~gone]
    )
    whole = packed(left._replace(weight=left.weight.astype(np.float32)), n_features)
    return whole._replace(weight=left.weight.astype(np.int16), scale=chunk.scale)


def _features(chunk: Chunk | Packed) -> IntArray:
    """The feature of each entry."""
    return np.repeat(chunk.feature, np.diff(chunk.entry))


def _grouped(feature: IntArray, child: IntArray, weight: npt.NDArray, bias: npt.NDArray) -> Chunk:
    """Single entries as a chunk."""
    order = np.lexsort((child, feature))
    features, counts = np.unique(feature, return_counts=True)
    entry = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return Chunk(
        features.astype(np.int32), entry, child[order].astype(np.uint8), weight[order], bias
    )


def _before(counts: IntArray) -> IntArray:
    """How many stand before each node, and in all."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
