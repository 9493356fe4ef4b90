"""A trained tree: a hierarchy of labels with sparse linear classifiers on every edge."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from umpteen.errors import MemoryBudgetError
from umpteen.kernels.beam import TreeArrays
from umpteen.kernels.simd import WIDTH
from umpteen.storage import storable
from umpteen.trees import Hierarchy

MAX_CHUNK = 128  # children whose weights stand together; must fit the 8 bits of `child`

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]


class Chunk(NamedTuple):
    """Weights of some children of one node, as the training kernel returns them."""

    feature: IntArray
    entry: IntArray
    child: npt.NDArray[np.uint8]
    weight: FloatArray
    bias: FloatArray


class ChunkPlan(NamedTuple):
    """How the children of all nodes are cut into chunks: see `TreeArrays`."""

    node_chunk: IntArray
    chunk_child: IntArray
    chunk_node: IntArray


def plan_chunks(first_child: IntArray, max_chunk: int = MAX_CHUNK) -> ChunkPlan:
    """Cut each node's children into chunks of at most `max_chunk`, whole multiples of 16.

    >>> plan_chunks(np.array([1, 4, 150])).chunk_child
    array([  1,   4,  84, 150], dtype=int32)
    """
    sizes = np.diff(first_child)
    per_node = -(-sizes // max_chunk)
    width = -(-sizes // (per_node * WIDTH)) * WIDTH
    per_node = -(-sizes // width)
    node_chunk = np.concatenate([[0], np.cumsum(per_node)])
    chunk_node = np.repeat(np.arange(len(sizes)), per_node)
    rank = np.arange(node_chunk[-1]) - node_chunk[chunk_node]
    starts = first_child[chunk_node] + rank * width[chunk_node]
    chunk_child = np.append(starts, first_child[-1])
    return ChunkPlan(*(part.astype(np.int32) for part in (node_chunk, chunk_child, chunk_node)))


@storable
@dataclass(eq=False)
class Tree:
    """Fields as in `TreeArrays`."""

    hierarchy: Hierarchy
    node_chunk: IntArray
    chunk_child: IntArray
    chunk_row: IntArray
    chunk_bucket: IntArray
    chunk_shift: IntArray
    chunk_scale: FloatArray
    buckets: IntArray
    feature: IntArray
    entry: IntArray
    child: npt.NDArray[np.uint8]
    weight: npt.NDArray[np.int16]
    bias: FloatArray
    log_trust: FloatArray

    @cached_property
    def arrays(self) -> TreeArrays:
        """What the kernels take."""
        rest = (getattr(self, name) for name in TreeArrays._fields[2:])
        return TreeArrays(self.hierarchy.first_child, self.hierarchy.label_order, *rest)

    @cached_property
    def widths(self) -> tuple[int, int]:
        """How many children the root has, and the widest node below it."""
        sizes = np.diff(self.hierarchy.first_child)
        return int(sizes[0]), int(sizes[1:].max(initial=1))

    def classifier(self, number: int) -> tuple[IntArray, FloatArray]:
        """Features and weights of the classifier that leads to a node or label."""
        chunk = int(np.searchsorted(self.chunk_child, number, side="right")) - 1
        first, last = self.chunk_row[chunk], self.chunk_row[chunk + 1]
        entries = slice(self.entry[first], self.entry[last])
        rows = np.repeat(np.arange(first, last), np.diff(self.entry[first : last + 1]))
        mine = self.child[entries] == number - self.chunk_child[chunk]
        weights = self.weight[entries][mine] * self.chunk_scale[chunk]
        return self.feature[rows[mine]], weights


def assemble(hierarchy: Hierarchy, chunks: Sequence[Chunk], n_features: int) -> Tree:
    """One tree out of the chunks that `plan_chunks` named, in that order."""
    plan = plan_chunks(hierarchy.first_child)
    n_entries = sum(len(chunk.child) for chunk in chunks)
    if n_entries > np.iinfo(np.int32).max:
        raise MemoryBudgetError(
            f"a tree with {n_entries:,} weights is too large; raise `prune` or `max_leaf`"
        )
    chunk_row = _ends([len(chunk.feature) for chunk in chunks])
    first_entry = _ends([len(chunk.child) for chunk in chunks])
    entries = [chunk.entry[:-1] + first for chunk, first in zip(chunks, first_entry, strict=False)]
    weights = [_whole_numbers(chunk.weight) for chunk in chunks]
    shifts, buckets = _bucket_index(chunks, chunk_row, n_features)
    return Tree(
        hierarchy=hierarchy,
        node_chunk=plan.node_chunk,
        chunk_child=plan.chunk_child,
        chunk_row=chunk_row,
        chunk_bucket=_ends([len(bucket) for bucket in buckets]),
        chunk_shift=shifts,
        chunk_scale=np.array([scale for _, scale in weights], np.float32),
        buckets=np.concatenate(buckets),
        feature=np.concatenate([chunk.feature for chunk in chunks]),
        entry=np.append(np.concatenate(entries), first_entry[-1]).astype(np.int32),
        child=np.concatenate([chunk.child for chunk in chunks]),
        weight=np.concatenate([whole for whole, _ in weights]),
        bias=np.concatenate([chunk.bias for chunk in chunks]),
        log_trust=np.zeros(len(hierarchy.label_order), np.float32),
    )


def _whole_numbers(weights: FloatArray) -> tuple[npt.NDArray[np.int16], float]:
    """Weights as 16-bit whole numbers and their unit: half the size, no measurable loss."""
    scale = float(np.abs(weights).max(initial=0)) / np.iinfo(np.int16).max or 1.0
    return np.rint(weights / scale).astype(np.int16), scale


def _ends(lengths: Sequence[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _bucket_index(
    chunks: Sequence[Chunk], chunk_row: IntArray, n_features: int
) -> tuple[IntArray, list[IntArray]]:
    """Per chunk, where features that share their leading bits begin: one bucket per row or so."""
    shifts, buckets = [], []
    for chunk, first_row in zip(chunks, chunk_row, strict=False):
        shift = max(0, (n_features // max(1, len(chunk.feature))).bit_length() - 1)
        edges = np.arange((n_features - 1 >> shift) + 2, dtype=np.int64) << shift
        shifts.append(shift)
        buckets.append((first_row + np.searchsorted(chunk.feature, edges)).astype(np.int32))
    return np.array(shifts, np.int32), buckets
