"""The weights of a tree in chunks, each with a few children of one node."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from umpteen.kernels.simd import WIDTH
from umpteen.linear.tree import FloatArray, IntArray, LongArray, Tree
from umpteen.memory import release_freed
from umpteen.trees import Hierarchy

_MOST_32 = 2**31 - 1  # a larger tree has offsets of 64 bits
MAX_CHUNK = 128  # children whose weights stand together; must fit the 8 bits of `child`


class Chunk(NamedTuple):
    """Weights of some children of one node, as the training kernel returns them."""

    feature: IntArray
    entry: IntArray
    child: npt.NDArray[np.uint8]
    weight: FloatArray
    bias: FloatArray


class Packed(NamedTuple):
    """The same as a tree keeps them: see `TreeArrays`; positions are counted from the chunk's."""

    feature: IntArray
    entry: IntArray
    child: npt.NDArray[np.uint8]
    weight: npt.NDArray[np.int16]
    scale: np.float32
    bias: FloatArray
    shift: int
    buckets: IntArray


class ChunkPlan(NamedTuple):
    """How the children of all nodes are cut into chunks: see `TreeArrays`."""

    node_chunk: IntArray
    chunk_child: IntArray
    chunk_node: IntArray

    def bounds(self, chunk: int) -> tuple[int, int]:
        """Return the numbers of its children: from the first to before the last."""
        return int(self.chunk_child[chunk]), int(self.chunk_child[chunk + 1])


def plan_chunks(first_child: IntArray) -> ChunkPlan:
    """Cut each node's children into chunks of at most `MAX_CHUNK`, whole multiples of 16.

    >>> plan_chunks(np.array([1, 4, 150])).chunk_child
    array([  1,   4,  84, 150], dtype=int32)
    """
    sizes = np.diff(first_child)
    per_node = -(-sizes // MAX_CHUNK)
    width = -(-sizes // (per_node * WIDTH)) * WIDTH
    per_node = -(-sizes // width)
    node_chunk = np.concatenate([[0], np.cumsum(per_node)])
    chunk_node = np.repeat(np.arange(len(sizes)), per_node)
    rank = np.arange(node_chunk[-1]) - node_chunk[chunk_node]
    starts = first_child[chunk_node] + rank * width[chunk_node]
    chunk_child = np.append(starts, first_child[-1])
    return ChunkPlan(*(each.astype(np.int32) for each in (node_chunk, chunk_child, chunk_node)))


def join(hierarchy: Hierarchy, node_chunk: IntArray, chunks: Iterable[Packed]) -> Tree:
    """Return one tree out of chunks in the order of their children, `node_chunk` by node.

    If nobody else holds the chunks, each kind of array is freed as soon as it is copied.
    """

    def joined(name: str) -> Any:
        whole = np.concatenate(arrays.pop(name))
        release_freed()
        return whole

    columns = (list(column) for column in zip(*chunks, strict=True))
    arrays: dict[str, list[Any]] = dict(zip(Packed._fields, columns, strict=True))
    offsets = [_offsets(list(map(len, arrays[name]))) for name in ("feature", "child", "buckets")]
    kind: Any = np.int64 if max(each[-1] for each in offsets) > _MOST_32 else np.int32
    rows, entries, buckets = (each.astype(kind) for each in offsets)
    arrays["entry"] = [
        own[:-1] + first for own, first in zip(arrays["entry"], entries, strict=False)
    ]
    arrays["entry"].append(entries[-1:])
    arrays["buckets"] = [own + first for own, first in zip(arrays["buckets"], rows, strict=False)]
    return Tree(
        hierarchy=hierarchy,
        node_chunk=node_chunk,
        chunk_child=_ends(list(map(len, arrays["bias"]))) + np.int32(1),
        chunk_row=rows,
        chunk_bucket=buckets,
        chunk_shift=np.array(arrays["shift"], np.int32),
        chunk_scale=np.array(arrays["scale"], np.float32),
        buckets=joined("buckets").astype(kind, copy=False),
        entry=joined("entry").astype(kind, copy=False),
        feature=joined("feature"),
        child=joined("child"),
        weight=joined("weight"),
        bias=joined("bias"),
        log_trust=np.zeros(len(hierarchy.label_order), np.float32),
    )


def split(tree: Tree) -> list[Packed]:
    """Return the chunks of a tree; `join` makes the same tree of them, but for `log_trust`."""
    return [_chunk_of(tree, chunk) for chunk in range(len(tree.chunk_scale))]


def upper_tree(tree: Tree, leaves: range, chunks: Sequence[Packed]) -> Tree:
    """Return the tree above a layer, whose nodes take the place of labels, with other chunks."""
    node_chunk = tree.node_chunk[: leaves.start + 1]
    return join(upper_hierarchy(tree.hierarchy, leaves), node_chunk, chunks[: node_chunk[-1]])


def upper_view(tree: Tree, leaves: range) -> Tree:
    """Return the tree above a layer, whose nodes take the place of labels; nothing is copied."""
    n_chunks = tree.node_chunk[leaves.start]
    n_rows = tree.chunk_row[n_chunks]
    n_entries = tree.entry[n_rows]
    return Tree(
        hierarchy=upper_hierarchy(tree.hierarchy, leaves),
        node_chunk=tree.node_chunk[: leaves.start + 1],
        chunk_child=tree.chunk_child[: n_chunks + 1],
        chunk_row=tree.chunk_row[: n_chunks + 1],
        chunk_bucket=tree.chunk_bucket[: n_chunks + 1],
        chunk_shift=tree.chunk_shift[:n_chunks],
        chunk_scale=tree.chunk_scale[:n_chunks],
        buckets=tree.buckets[: tree.chunk_bucket[n_chunks]],
        feature=tree.feature[:n_rows],
        entry=tree.entry[: n_rows + 1],
        child=tree.child[:n_entries],
        weight=tree.weight[:n_entries],
        bias=tree.bias[: tree.chunk_child[n_chunks] - 1],
        log_trust=np.zeros(len(leaves), np.float32),
    )


def upper_hierarchy(hierarchy: Hierarchy, leaves: range) -> Hierarchy:
    """Return the hierarchy above a layer, whose nodes take the place of labels."""
    order = np.arange(len(leaves), dtype=np.int32)
    return Hierarchy(hierarchy.first_child[: leaves.start + 1], order)


def packed(chunk: Chunk, n_features: int) -> Packed:
    """Return weights as 16-bit whole numbers and their unit: half the size, no measurable loss.

    The index has, for features that share their leading bits, where they begin: one bucket per
    row or so.
    """
    scale = np.float32(np.abs(chunk.weight).max(initial=0) / np.iinfo(np.int16).max or 1.0)
    weight = np.rint(chunk.weight / scale).astype(np.int16)
    shift = max(0, (n_features // max(1, len(chunk.feature))).bit_length() - 1)
    edges = np.arange((n_features - 1 >> shift) + 2, dtype=np.int64) << shift
    buckets = np.searchsorted(chunk.feature, edges).astype(np.int32)
    return Packed(
        chunk.feature, chunk.entry, chunk.child, weight, scale, chunk.bias, shift, buckets
    )


def unpacked(chunk: Packed) -> Chunk:
    """Return the chunk with numbers for weights."""
    weight = chunk.weight * chunk.scale
    return Chunk(chunk.feature, chunk.entry, chunk.child, weight, chunk.bias)


def side_by_side(chunks: Sequence[Chunk]) -> Chunk:
    """Return one chunk with the children of several, as if they had been trained together.

    >>> one, other = (
    ...     Chunk(
    ...         np.array([feature], np.int32),
    ...         np.array([0, 1], np.int32),
    ...         np.zeros(1, np.uint8),
    ...         np.ones(1, np.float32),
    ...         np.zeros(1, np.float32),
    ...     )
    ...     for feature in (7, 3)
    ... )
    >>> side_by_side([one, other])[:3]
    (array([3, 7], dtype=int32), array([0, 1, 2], dtype=int32), array([1, 0], dtype=uint8))
    """
    first = _ends([len(chunk.bias) for chunk in chunks])
    features = np.concatenate([np.repeat(each.feature, np.diff(each.entry)) for each in chunks])
    children = np.concatenate(
        [chunk.child + before for chunk, before in zip(chunks, first, strict=False)]
    )
    order = np.argsort(features, kind="stable")  # so that the children of a feature ascend
    kept, counts = np.unique(features, return_counts=True)
    return Chunk(
        feature=kept.astype(np.int32),
        entry=_ends(counts.tolist()),
        child=children[order].astype(np.uint8),
        weight=np.concatenate([chunk.weight for chunk in chunks])[order],
        bias=np.concatenate([chunk.bias for chunk in chunks]),
    )


def _chunk_of(tree: Tree, chunk: int) -> Packed:
    first_row, last_row = tree.chunk_row[chunk : chunk + 2]
    entry = tree.entry[first_row : last_row + 1]
    entries = slice(entry[0], entry[-1])
    return Packed(
        feature=tree.feature[first_row:last_row],
        entry=(entry - entry[0]).astype(np.int32),
        child=tree.child[entries],
        weight=tree.weight[entries],
        scale=tree.chunk_scale[chunk],
        bias=tree.bias[tree.chunk_child[chunk] - 1 : tree.chunk_child[chunk + 1] - 1],
        shift=int(tree.chunk_shift[chunk]),
        buckets=(
            tree.buckets[tree.chunk_bucket[chunk] : tree.chunk_bucket[chunk + 1]] - first_row
        ).astype(np.int32),
    )


def _ends(lengths: Sequence[int]) -> IntArray:
    return _offsets(lengths).astype(np.int32)


def _offsets(lengths: Sequence[int]) -> LongArray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
