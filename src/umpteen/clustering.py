"""Order sparse rows so that similar ones are adjacent, by repeated spherical 2-means."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import parallel
from umpteen.kernels.clustering import bisect
from umpteen.kernels.topk import frozen_csr

IntArray = npt.NDArray[np.int32]
Borders = npt.NDArray[np.int64]
_MAX_ROUNDS = 20  # of `arrange`


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
    tasks = [(order[cut.start : cut.end], cut) for cut in cuts]
    order = order.copy()
    found = parallel.map(_separated, tasks, (rows, max_rounds, scratch), n_jobs=n_jobs)
    for cut, own in zip(cuts, found, strict=True):
        order[cut.start : cut.end] = own
    return order


def _separated(
    task: tuple[IntArray, Cut], rows: csr_matrix, max_rounds: int,
    scratch: parallel.PerThread[npt.NDArray[np.float32]],
) -> IntArray:  # fmt: skip
    members, cut = task
    own = members.copy()
    bisect(*frozen_csr(rows), own, cut.split - cut.start, max_rounds, cut.seed, scratch.value)
    return own


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
    coarse = np.array([0, len(order)])
    for fine in layers:
        pending = [fine[i : j + 1] for i, j in pairwise(np.searchsorted(fine, coarse))]
        while pending := [borders for borders in pending if len(borders) > 2]:
            cuts = [_middle(borders, seed) for borders in pending]
            order = cut_all(rows, order, cuts, max_rounds=_MAX_ROUNDS, n_jobs=n_jobs)
            if done is not None:
                done(len(cuts))
            pending = [half for borders in pending for half in _halves(borders)]
        coarse = fine
    return order


def _halves(borders: Borders) -> tuple[Borders, Borders]:
    middle = len(borders) // 2
    return borders[: middle + 1], borders[middle:]


def _middle(borders: Borders, seed: int) -> Cut:
    """Return the cut at the middle border."""
    start, split, end = borders[[0, len(borders) // 2, -1]].tolist()
    return Cut(start, split, end, (seed * 1_000_003 + start * 8191 + end) & 0x7FFFFFFF)
