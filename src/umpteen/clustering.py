"""Order sparse rows so that similar ones are adjacent, by repeated spherical 2-means."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import parallel
from umpteen.kernels.clustering import bisect
from umpteen.kernels.topk import frozen_csr
from umpteen.sharding import OnRows, Sharded, stays_here

IntArray = npt.NDArray[np.int32]
Borders = npt.NDArray[np.int64]
_MAX_ROUNDS = 20  # of `arrange`
_MANY_CLUSTERS = 32  # each is then a task of its own, with all its cuts


class Cut(NamedTuple):
    """Where to separate the places `start:end` of an order: before the place `split`."""

    start: int
    split: int
    end: int
    seed: int


def cut_all(
    rows: csr_matrix, order: IntArray, cuts: Sequence[Cut], *, max_rounds: int, n_jobs: int | None
) -> IntArray:
    """Return `order`, numbers of `rows`, with both sides of each cut made of similar rows.

    Cuts do not overlap. Each is a spherical 2-means of at most `max_rounds` rounds whose clusters
    have the sizes that the cut asks for.
    """
    scratch = parallel.PerThread(partial(np.zeros, rows.shape[1], np.float32))
    tasks = [OnRows(order[cut.start : cut.end], cut) for cut in cuts]
    order = order.copy()
    shared: tuple[Any, ...] = (Sharded(rows), max_rounds, scratch)
    found = _mapped(_separated, tasks, shared, rows, n_jobs)
    for cut, own in zip(cuts, found, strict=True):
        order[cut.start : cut.end] = own
    return order


def _mapped(
    function: Callable[..., Any], tasks: list[OnRows], shared: tuple[Any, ...], rows: csr_matrix,
    n_jobs: int | None, done: Callable[[OnRows], object] | None = None,
) -> list[Any]:  # fmt: skip
    """Return `function(task, *shared)` for each task: on threads here, or on any engine."""
    if stays_here(rows.nnz, len(tasks), n_jobs):
        return parallel.run(lambda task: function(task, *shared), tasks, n_jobs=n_jobs, done=done)
    return parallel.map(function, tasks, shared, n_jobs=n_jobs, done=done)


def _separated(
    task: OnRows, sharded: Sharded, max_rounds: int,
    scratch: parallel.PerThread[npt.NDArray[np.float32]],
) -> IntArray:  # fmt: skip
    (rows,), places = sharded.at(task.rows)
    own, cut = places.copy(), task.item
    bisect(*frozen_csr(rows), own, cut.split - cut.start, max_rounds, cut.seed, scratch.value)
    return sharded.rows_at(own)


def arrange(
    rows: csr_matrix,
    order: IntArray,
    layers: Sequence[Borders],
    seed: int,
    *,
    n_jobs: int | None = -1,
    done: Callable[[int], object] | None = None,
) -> IntArray:
    """Return `order`, numbers of `rows`, with similar rows between two borders of each layer.

    Borders of coarse clusters come before those of the finer clusters within them; each layer goes
    from 0 to the length of `order`. `done(n)` is called after every `n` cuts. Any `n_jobs` gives
    the same order.

    >>> rows = csr_matrix(np.eye(2, dtype=np.float32)[[0, 1, 0, 1]])
    >>> arrange(rows, np.arange(4, dtype=np.int32), [np.array([0, 2, 4])], seed=0)
    array([0, 2, 1, 3], dtype=int32)
    """
    tell = done or (lambda n: None)
    order = order.copy()
    clusters = _pending([_Cluster.of(layers, 0, len(order))])
    while 0 < len(clusters) < _MANY_CLUSTERS:
        cuts = [cluster.cut(seed) for cluster in clusters]
        order = cut_all(rows, order, cuts, max_rounds=_MAX_ROUNDS, n_jobs=n_jobs)
        tell(len(cuts))
        clusters = _pending(
            [
                half
                for cluster, cut in zip(clusters, cuts, strict=True)
                for half in cluster.halves(cut)
            ]
        )
    scratch = parallel.PerThread(partial(np.zeros, rows.shape[1], np.float32))
    tasks = [OnRows(order[cluster.start : cluster.end], cluster) for cluster in clusters]
    shared: tuple[Any, ...] = (Sharded(rows), seed, scratch)

    found = _mapped(
        _arranged, tasks, shared, rows, n_jobs, done=lambda task: tell(task.item.n_cuts)
    )
    for cluster, own in zip(clusters, found, strict=True):
        order[cluster.start : cluster.end] = own
    return order


class _Cluster(NamedTuple):
    """The places `start:end` of an order, and the borders of each layer that has some inside."""

    start: int
    end: int
    layers: list[Borders]

    @classmethod
    def of(cls, layers: Sequence[Borders], start: int, end: int) -> "_Cluster":
        own = (
            layer[np.searchsorted(layer, start) : np.searchsorted(layer, end) + 1]
            for layer in layers
        )
        return cls(start, end, [borders for borders in own if len(borders) > 2])

    @property
    def n_cuts(self) -> int:
        return len(self.layers[-1]) - 2  # the finest layer has the borders of all

    def cut(self, seed: int) -> Cut:
        """Return the cut at the middle border of the coarsest layer."""
        split = int(self.layers[0][len(self.layers[0]) // 2])
        seed = (seed * 1_000_003 + self.start * 8191 + self.end) & 0x7FFFFFFF
        return Cut(self.start, split, self.end, seed)

    def halves(self, cut: Cut) -> list["_Cluster"]:
        ends = (cut.start, cut.split), (cut.split, cut.end)
        return [_Cluster.of(self.layers, *both) for both in ends]


def _pending(clusters: list[_Cluster]) -> list[_Cluster]:
    return [cluster for cluster in clusters if cluster.layers]


def _arranged(
    task: OnRows, sharded: Sharded, seed: int,
    scratch: parallel.PerThread[npt.NDArray[np.float32]],
) -> IntArray:  # fmt: skip
    """Make all cuts of a cluster: so many are small that each alone would not be worth its way."""
    (rows,), members = sharded.at(task.rows)
    own, features, whole = members.copy(), frozen_csr(rows), task.item
    clusters = [whole]
    while clusters:
        cluster = clusters.pop()
        cut = cluster.cut(seed)
        places = own[cut.start - whole.start : cut.end - whole.start]
        bisect(*features, places, cut.split - cut.start, _MAX_ROUNDS, cut.seed, scratch.value)
        clusters += _pending(cluster.halves(cut))
    return sharded.rows_at(own)
