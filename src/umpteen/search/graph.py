"""Approximate search: a navigable graph of neighbours (HNSW), walked from far to near.

FAISS builds and walks it, since version 1.15 with the same result for any number of threads.
What is kept and saved are plain arrays; the library's own object is made of them when it is
first needed, and holds a copy of the vectors in numbers of 16 bits: a walk reads half as much
memory, which is most of its time, and finds as much.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from umpteen import parallel
from umpteen.errors import ModelCorruptError
from umpteen.extras import require
from umpteen.search.vectors import BoolArray, FloatArray, IntArray
from umpteen.storage import Shape, Within, storable

_MOST_LEVELS = 32
_SEED = 12345


def is_available() -> bool:
    """Return whether the library is installed."""
    return find_spec("faiss") is not None


def require_library() -> Any:
    """Return FAISS, or raise an error with advice how to get it."""
    return require("faiss", "neural")


@storable
@dataclass(eq=False)
class Graph:
    """Nodes stand for vectors and are linked to near ones, on one level or, a few, on more."""

    n_links: Annotated[int, Within(2, 2**16)]  # per node and level, twice as many on the lowest
    entry: int  # the node where every walk begins
    ids: Annotated[IntArray, Shape("nodes")]  # which vector a node stands for
    n_levels: Annotated[IntArray, Shape("nodes"), Within(1, _MOST_LEVELS)]
    links: Annotated[IntArray, Shape("links")]  # by node, by level from the lowest; -1 for none
    hidden: Annotated[BoolArray, Shape("nodes")]  # walked over, but never answered

    @classmethod
    def empty(cls, n_links: int) -> "Graph":
        """Return a graph that has nothing to find yet."""
        none = np.zeros(0, np.int32)
        return cls(n_links, -1, none, none, none, np.zeros(0, np.bool_))

    def add(self, vectors: FloatArray, ids: IntArray, *, width: int, n_jobs: int | None) -> None:
        """Link more of the vectors to those that are there; O(len(ids) * width * log(nodes))."""
        faiss, native = require_library(), self._native(vectors)
        native.hnsw.efConstruction = width
        native.hnsw.rng = faiss.RandomGenerator(_SEED + len(self.ids))  # as if never saved
        with _threads(n_jobs):
            native.add(vectors[ids])
        self.ids = np.concatenate([self.ids, ids])
        self.n_levels = faiss.vector_to_array(native.hnsw.levels)
        self.links = faiss.vector_to_array(native.hnsw.neighbors)
        self.entry = int(native.hnsw.entry_point)
        self._hide(np.append(self.hidden, np.zeros(len(ids), np.bool_)))

    def remove(self, ids: IntArray) -> None:
        """Remove these from all answers."""
        self._hide(self.hidden | np.isin(self.ids, ids))

    def search(
        self, vectors: FloatArray, queries: FloatArray, k: int, *, width: int, n_jobs: int | None
    ) -> IntArray:
        """Return ids (queries, k) of near vectors, in no order; -1 where fewer were found."""
        faiss, native = require_library(), self._native(vectors)
        settings = faiss.SearchParametersHNSW(
            efSearch=max(min(width, len(self.ids)), k), sel=self._selector()
        )
        with _threads(n_jobs):
            _, nodes = native.search(queries, k, params=settings)
        return np.where(nodes >= 0, self.ids[nodes], np.int32(-1))

    def __getstate__(self) -> dict[str, Any]:
        """Copies hold the arrays alone, and make the library's objects anew."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _hide(self, hidden: BoolArray) -> None:
        self.hidden = hidden
        vars(self).pop("_cached_selector", None)

    def _selector(self) -> Any:
        if "_cached_selector" not in vars(self):
            bits = np.packbits(~self.hidden, bitorder="little")
            chosen = require_library().IDSelectorBitmap(bits) if self.hidden.any() else None
            self._cached_selector = chosen
        return self._cached_selector

    def _native(self, vectors: FloatArray) -> Any:
        """The library's own graph with these links."""
        if "_cached_native" not in vars(self):
            self._cached_native = self._made_native(vectors)
        return self._cached_native

    def _made_native(self, vectors: FloatArray) -> Any:
        faiss = require_library()
        halves = faiss.ScalarQuantizer.QT_fp16
        shape = vectors.shape[1], halves, self.n_links
        native = faiss.IndexHNSWSQ(*shape, faiss.METRIC_INNER_PRODUCT)
        if not len(self.ids):
            return native
        offsets = self._offsets()
        self._check(len(vectors), offsets, native.hnsw.cum_nneighbor_per_level.size())
        native.storage.add(vectors[self.ids])
        native.ntotal = len(self.ids)
        for values, place in (
            (self.n_levels, native.hnsw.levels),
            (offsets.astype(np.uint64), native.hnsw.offsets),
            (self.links, native.hnsw.neighbors),
        ):
            faiss.copy_array_to_vector(np.ascontiguousarray(values), place)
        native.hnsw.entry_point = self.entry
        native.hnsw.max_level = int(self.n_levels[self.entry]) - 1
        return native

    def _offsets(self) -> npt.NDArray[np.int64]:
        """Where the links of each node begin, and where the last one's end."""
        sizes = self.n_links * (self.n_levels.astype(np.int64) + 1)
        return np.concatenate([[0], np.cumsum(sizes)])

    def _check(self, n_vectors: int, offsets: npt.NDArray[np.int64], most_levels: int) -> None:
        """Walking over links that lead nowhere would crash."""
        n_nodes = len(self.ids)
        fits = (
            len(self.n_levels) == len(self.hidden) == n_nodes
            and _all_within(self.ids, 0, n_vectors)
            and np.bincount(self.ids[~self.hidden]).max(initial=0) <= 1  # else answered twice
            and _all_within(self.n_levels, 1, most_levels)
            and 0 <= self.entry < n_nodes
            and self.n_levels[self.entry] == self.n_levels.max()
            and len(self.links) == offsets[-1]
            and _all_within(self.links, -1, n_nodes)
            and all(self._is_whole(level, offsets) for level in range(1, self.n_levels.max()))
        )
        if not fits:
            raise ModelCorruptError(
                f"the search graph of {n_nodes:,} nodes over {n_vectors:,} vectors is damaged: "
                "copy the model folder again, or build the LabelIndex again"
            )

    def _is_whole(self, level: int, offsets: npt.NDArray[np.int64]) -> bool:
        """Whether links on a level above the lowest lead to nodes that are on it."""
        nodes = np.flatnonzero(self.n_levels > level)
        begin = offsets[nodes] + self.n_links * (level + 1)
        links = self.links[begin[:, None] + np.arange(self.n_links)]
        return bool((self.n_levels[links[links >= 0]] > level).all())


def _all_within(values: IntArray, low: int, end: int) -> bool:
    return bool(values.min() >= low and values.max() < end)


@contextmanager
def _threads(n_jobs: int | None) -> Iterator[None]:
    faiss = require_library()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(min(parallel.n_threads(n_jobs), parallel.n_threads(-1)))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
