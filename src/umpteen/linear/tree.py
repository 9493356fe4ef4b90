"""A trained tree: a hierarchy of labels with sparse linear classifiers on every edge."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from umpteen.kernels.beam import TreeArrays
from umpteen.storage import storable
from umpteen.trees import Hierarchy

IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]


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
