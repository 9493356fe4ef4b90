"""A trained tree: a hierarchy of labels with sparse linear classifiers on every edge."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from umpteen.kernels.beam import TreeArrays
from umpteen.kernels.compiling import frozen
from umpteen.storage import Given, Index, Offsets, Shape, Sizes, Within, is_rising, storable
from umpteen.trees import Hierarchy

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]


@storable
@dataclass(eq=False)
class Tree:
    """Fields as in `TreeArrays`."""

    hierarchy: Annotated[Hierarchy, Given("labels", "placed")]
    node_chunk: Annotated[IntArray, Shape("nodes + 1"), Offsets("chunks")]
    chunk_child: Annotated[IntArray, Shape("chunks + 1")]
    chunk_row: Annotated[IntArray | LongArray, Shape("chunks + 1"), Offsets("rows")]
    chunk_bucket: Annotated[IntArray | LongArray, Shape("chunks + 1"), Offsets("buckets")]
    chunk_shift: Annotated[IntArray, Shape("chunks"), Within(0, 31)]
    chunk_scale: Annotated[FloatArray, Shape("chunks"), Within(0, 1e30)]
    buckets: Annotated[IntArray | LongArray, Shape("buckets")]
    feature: Annotated[IntArray, Shape("rows"), Index("features")]
    entry: Annotated[IntArray | LongArray, Shape("rows + 1")]
    child: Annotated[npt.NDArray[np.uint8], Shape("entries")]
    weight: Annotated[npt.NDArray[np.int16], Shape("entries")]
    bias: Annotated[FloatArray, Shape("children"), Within(-1e30, 1e30)]
    log_trust: Annotated[FloatArray, Shape("placed"), Within(-1e30, 1e-3)]  # at most 0

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: fields that do not fit one another."""
        first = self.hierarchy.first_child
        if len(self.node_chunk) != len(first) or len(self.bias) != first[-1] - 1:
            yield "has other nodes than its hierarchy"
        elif not np.array_equal(self.chunk_child[self.node_chunk], first) or not is_rising(
            self.chunk_child
        ):
            yield "has chunks that are no parts of its nodes"
        elif not self._buckets_fit(sizes["features"]):
            yield "has buckets that lead out of their chunks"
        elif not self._entries_fit():
            yield "has weights of children that are not in their chunks"

    def _buckets_fit(self, n_features: int) -> bool:
        """Whether each chunk's buckets hold rows of that chunk, for every feature."""
        low, n_buckets = self.chunk_bucket[:-1], (n_features - 1 >> self.chunk_shift) + 2
        return bool(
            np.array_equal(np.diff(self.chunk_bucket), n_buckets)
            and is_rising(self.buckets)
            and (self.buckets[low] >= self.chunk_row[:-1]).all()
            and (self.buckets[low + n_buckets - 1] <= self.chunk_row[1:]).all()
        )

    def _entries_fit(self) -> bool:
        """Whether each chunk's entries are of its own children."""
        entry = self.entry
        if entry[0] != 0 or entry[-1] != len(self.child) or not is_rising(entry):
            return False
        begin, end = entry[self.chunk_row[:-1]], entry[self.chunk_row[1:]]
        some = np.flatnonzero(begin < end)  # those without any weight have nothing to check
        if len(some) == 0:
            return True
        last = np.maximum.reduceat(self.child, begin[some])
        return bool((last < np.diff(self.chunk_child)[some]).all())

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: what was made from them would go to other processes twice."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def arrays(self) -> TreeArrays:
        """Return the arrays that the kernels take."""
        rest = (getattr(self, name) for name in TreeArrays._fields[2:])
        arrays = TreeArrays(self.hierarchy.first_child, self.hierarchy.label_order, *rest)
        return frozen(arrays)  # type: ignore[no-any-return]

    @cached_property
    def widths(self) -> tuple[int, int]:
        """Return how many children the root has, and the widest node below it."""
        sizes = np.diff(self.hierarchy.first_child)
        return int(sizes[0]), int(sizes[1:].max(initial=1))

    def classifier(self, number: int) -> tuple[IntArray, FloatArray]:
        """Return features and weights of the classifier that leads to a node or label."""
        chunk = int(np.searchsorted(self.chunk_child, number, side="right")) - 1
        first, last = self.chunk_row[chunk], self.chunk_row[chunk + 1]
        entries = slice(self.entry[first], self.entry[last])
        rows = np.repeat(np.arange(first, last), np.diff(self.entry[first : last + 1]))
        mine = self.child[entries] == number - self.chunk_child[chunk]
        weights = self.weight[entries][mine] * self.chunk_scale[chunk]
        return self.feature[rows[mine]], weights
