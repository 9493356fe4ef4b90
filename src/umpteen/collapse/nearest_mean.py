"""Find the nearest of many means: float32 discards most of them, float64 decides."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Pairs = tuple[IntArray, IntArray]  # rows of samples, and of means
Sieve = npt.NDArray[Any]  # of float32 or float64

_BLOCK_ROWS = 512
_BLOCK_MEANS = 8192  # with the rows, 16 MB of scores at a time, or 32 MB in 64 bits
_LEAST_SCORES = 2**17  # of few samples, more means at a time
_FEW = 256  # candidates of a sample, up to which the difference from each is taken
_BLOCK_NUMBERS = 2**18  # of differences at a time
_FARTHEST = 2.0**40  # lengths beyond, against the means', are left to 64 bits


@dataclass(frozen=True, eq=False)
class NearestMean:
    """Find the mean with the smallest float64 distance to each sample.

    The result equals `((sample - means) ** 2).sum(axis=1).argmin()`: ties go to the lowest row,
    whatever the scale of the features and the number of samples.

    One float32 matrix product scores all means and adds a bound on its rounding error:
    s = x.m - |m|^2 / 2, which is highest for the nearest mean. Samples x and means m are centered,
    and means are scaled to length 1 or less. A mean is discarded if its upper bound is below the
    lower bound of another mean. If many means remain, because the features spread much more
    widely than the means differ, the same test in float64 leaves few.
    """

    means: npt.NDArray[np.floating]  # (n_means, d)
    center: FloatArray  # (d,)
    scale: float
    lengths: FloatArray  # (n_means,) around the center, scaled
    sieve: npt.NDArray[np.float32]  # (d + 2, n_means)

    @classmethod
    def of(cls, means: npt.NDArray[np.floating]) -> Self:
        """Prepare the search; means are centered, because large offsets cost precision."""
        center = means.mean(axis=0, dtype=np.float64)
        lengths = np.empty(len(means))
        for rows in _slices(len(means), _BLOCK_MEANS):
            lengths[rows] = _lengths(means[rows] - center)
        scale = float(2.0 ** np.ceil(np.log2(lengths.max() or 1.0)))  # divides without rounding
        lengths /= scale
        sieve = np.empty((means.shape[1] + 2, len(means)), np.float32)
        for rows in _slices(len(means), _BLOCK_MEANS):
            sieve[:, rows] = _sieve((means[rows] - center) / scale, lengths[rows], np.float32)
        return cls(means, center, scale, lengths, sieve)

    def search(self, features: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return the row of the nearest mean and the squared distance; both `(n,)`."""
        features = np.asarray(features, np.float64)
        which = np.zeros(len(features), np.int64)
        distances = np.full(len(features), np.inf)
        n_rows = min(len(features), _BLOCK_ROWS)
        n_means = max(_BLOCK_MEANS, _LEAST_SCORES // max(n_rows, 1))
        room = np.empty(n_rows * n_means, np.float32)  # fresh memory costs as much again
        for rows in _slices(len(features), _BLOCK_ROWS):
            samples = _Samples.of(features[rows], (features[rows] - self.center) / self.scale)
            for block in _slices(len(self.means), n_means):
                for places, ids in self._candidates(samples, block, room):
                    _keep_nearest(
                        samples.features, self.means, places, ids, which[rows], distances[rows]
                    )
        return which, distances

    def _candidates(self, samples: "_Samples", block: slice, room: Sieve) -> Iterator[Pairs]:
        """Yield pairs of samples and means, block by block, that include all nearest ones."""
        n_rows, n_means = len(samples.rough), block.stop - block.start
        scores = room[: n_rows * n_means].reshape(n_rows, n_means)
        np.matmul(samples.rough, self.sieve[:, block], out=scores)
        rows, passed = samples.sift(np.arange(n_rows), scores, self.lengths[block])
        if np.count_nonzero(passed) <= _FEW * len(rows):
            yield from self._pairs(rows, passed, block.start)
            return
        for first in range(block.start, block.stop, _BLOCK_MEANS):
            some = slice(first, min(first + _BLOCK_MEANS, block.stop))
            centered = (self.means[some] - self.center) / self.scale
            fine = samples.fine[rows] @ _sieve(centered, self.lengths[some], np.float64)
            yield from self._pairs(*samples.sift(rows, fine, self.lengths[some]), first)

    def _pairs(self, rows: IntArray, passed: npt.NDArray[np.bool_], first: int) -> Iterator[Pairs]:
        places = np.flatnonzero(passed)
        size = max(_BLOCK_NUMBERS // max(len(self.center), 1), 1)
        for start in range(0, len(places), size):
            row, column = np.divmod(places[start : start + size], passed.shape[1])
            yield rows[row], column + first


@dataclass(frozen=True, eq=False)
class _Samples:
    """A block of samples in float32 and float64, and a lower bound of their best scores."""

    features: FloatArray  # (n, d) as given
    rough: npt.NDArray[np.float32]  # (n, d + 2)
    fine: FloatArray  # (n, d + 2)
    reached: FloatArray  # (n,) a score that the nearest mean is sure to have

    @classmethod
    def of(cls, features: FloatArray, centered: FloatArray) -> Self:
        lengths = _lengths(centered)[:, None]
        fine = np.hstack([centered, lengths, np.ones_like(lengths)])
        near = lengths <= _FARTHEST
        rough = np.where(near, fine, 0).astype(np.float32)
        return cls(features, rough, fine, np.full(len(features), -np.inf))

    def sift(
        self, rows: IntArray, scores: Sieve, lengths: FloatArray
    ) -> tuple[IntArray, npt.NDArray[np.bool_]]:
        """Return the samples with candidates and a mask of these; `scores` is `(rows, means)`."""
        own, dim = self.fine[rows, -2], self.features.shape[1]
        best = scores.argmax(axis=1)
        highest = scores[np.arange(len(rows)), best]
        bound = _error(dim, scores.dtype) * lengths[best] * (own + lengths[best])
        unsure = (own > _FARTHEST) & (scores.dtype == np.float32)
        self.reached[rows] = np.maximum(
            self.reached[rows], np.where(unsure, -np.inf, highest - 2 * bound)
        )
        # Distances are rounded, too: all that may be equal to the least pass. That is also more
        # than what products too small for 32 bits add up to.
        rounding = 2 * _error(dim, np.dtype(np.float64)) * (1 + own) ** 2
        least = np.where(unsure, -np.inf, self.reached[rows] - rounding).astype(scores.dtype)
        least = np.nextafter(least, scores.dtype.type(-np.inf))
        some = np.flatnonzero(highest >= least)
        chosen = scores if len(some) == len(rows) else scores[some]
        return rows[some], chosen >= least[some, None]


def _sieve(centered: FloatArray, lengths: FloatArray, dtype: Any) -> Sieve:
    """Columns whose products with (sample, its length, 1) are scores plus bounds of errors."""
    error = _error(centered.shape[1], np.dtype(dtype))
    bound = error * lengths
    constant = bound * lengths - lengths**2 / 2
    return np.vstack([centered.T, bound, constant]).astype(dtype, copy=False)


def _error(dim: int, dtype: np.dtype[Any]) -> float:
    """Return a factor: times |m| (|x| + |m|), it bounds the rounding error of a score.

    A sum of n products is off by at most n units, each factor adds one unit, and |m|^2 / 2 adds
    as much again. The factor 1.25 covers errors of second order.
    """
    return 1.25 * (dim + 8) * float(np.finfo(dtype).eps) / 2


def _keep_nearest(
    features: FloatArray,
    means: npt.NDArray[np.floating],
    rows: IntArray,
    ids: IntArray,
    which: IntArray,
    distances: FloatArray,
) -> None:
    """Update `which` and `distances` by pairs of rows and ids, both in rising order."""
    found = ((features[rows] - means[ids]) ** 2).sum(axis=1)
    order = np.lexsort((found, rows))  # stable: of equal distances, the lowest id first
    rows, ids, found = rows[order], ids[order], found[order]
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    rows, ids, found = rows[first], ids[first], found[first]
    nearer = found < distances[rows]
    which[rows[nearer]], distances[rows[nearer]] = ids[nearer], found[nearer]


def _lengths(vectors: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", vectors, vectors)))


def _slices(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
