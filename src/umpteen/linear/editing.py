"""Trees with labels added, removed or replaced.

Labels that stay keep their weights to the bit, but for the siblings of a replaced label whose new
weights are too large for the unit that they share: see `with_children`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from umpteen.linear.chunks import MAX_CHUNK, Chunk, Packed, join, packed, split, unpacked
from umpteen.linear.tree import IntArray, Tree
from umpteen.trees import Hierarchy

_COARSEST = 4  # times the unit that new weights would have alone, if they join a chunk


class LabelChunk(NamedTuple):
    """Labels and their weights, in the same order."""

    labels: IntArray
    chunk: Chunk


def flat_tree(added: Sequence[LabelChunk], n_features: int, tree: Tree | None = None) -> Tree:
    """Return a tree of a single leaf: the labels of `tree`, which is one as well, and new ones.

    The first of the new chunks joins the last old one if that has room, so that labels which
    come one by one do not stand alone.
    """
    chunks = [packed(each.chunk, n_features) for each in added]
    if tree is not None:
        *before, last = split(tree)
        joined = _joined(last, added[0].chunk, chunks[0].scale, n_features)
        chunks = [*before, *([last, chunks[0]] if joined is None else [joined]), *chunks[1:]]
    old = [] if tree is None else [tree.hierarchy.label_order]
    order = np.concatenate([*old, *(each.labels for each in added)]).astype(np.int32)
    alone = Hierarchy(np.array([1, 1 + len(order)], np.int32), order)
    new_tree = join(alone, np.array([0, len(chunks)], np.int32), chunks)
    if tree is not None:
        new_tree.log_trust[: len(tree.log_trust)] = tree.log_trust
    return new_tree


def without_labels(tree: Tree, labels: npt.NDArray[np.integer], n_features: int) -> Tree:
    """Return the tree without some labels and their weights; a leaf may end up empty."""
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
    """Return a chunk whose `children`, counted from its first, have the weights of `new`.

    The others keep their bits if the new weights fit the unit of the chunk. If they are larger,
    all weights are rounded to a larger unit.
    """
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
    whole = packed(merged, n_features)
    fits = _fits(new.weight, chunk.scale)
    return _in_unit(whole, merged.weight, chunk.scale) if kept.any() and fits else whole


def _joined(chunk: Packed, new: Chunk, scale: np.float32, n_features: int) -> Packed | None:
    """One chunk of two, the first of which keeps its bits; None where that cannot be."""
    n_old, n_new = len(chunk.bias), len(new.bias)
    too_coarse = chunk.scale > _COARSEST * scale
    if n_old + n_new > MAX_CHUNK or too_coarse or not _fits(new.weight, chunk.scale):
        return None
    old = unpacked(chunk)
    merged = _grouped(
        np.append(_features(old), _features(new)),
        np.append(old.child.astype(np.int32), new.child.astype(np.int32) + n_old),
        np.append(old.weight, new.weight),
        np.append(old.bias, new.bias),
    )
    return _in_unit(packed(merged, n_features), merged.weight, chunk.scale)


def _fits(weight: npt.NDArray[np.float32], scale: np.float32) -> bool:
    """Whether weights can be written in a unit."""
    return bool(np.abs(weight).max(initial=0) <= scale * np.iinfo(np.int16).max)


def _in_unit(chunk: Packed, weight: npt.NDArray[np.float32], scale: np.float32) -> Packed:
    """The chunk in a given unit; weights that were in it before stay what they were."""
    return chunk._replace(weight=np.rint(weight / scale).astype(np.int16), scale=scale)


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
