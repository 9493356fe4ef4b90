"""Where the features of label sets never seen would be: the tag-wise average property at work."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen.kernels.set_search import search_sets
from umpteen.metrics.label_sets import LabelSets
from umpteen.storage import Shape, Sizes, Within, storable

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_ROUNDS = 5
_RIDGE = 1e-3  # samples' worth of pull to the average label
_BLOCK_ROWS = 256


@storable
@dataclass(frozen=True, eq=False)
class TagAverages:
    """Means of label sets as `offset + scale * sum of the labels' vectors`, by multiplicity.

    The scales are the paper's C_m. The offsets, one per multiplicity, are 0 in theory; after a
    ReLU, the features of all samples have a direction in common.

    Label sets seen in training are recognised by the sums of their labels' random keys.
    """

    vectors: Annotated[FloatArray, Shape("labels", "dim")]
    multiplicities: Annotated[IntArray, Shape("m"), Within(1, 2**31)]
    scales: Annotated[FloatArray, Shape("m")]
    offsets: Annotated[FloatArray, Shape("m", "dim")]
    least: float  # smallest inner product of two labels' vectors
    seen: Annotated[npt.NDArray[np.uint64], Shape("seen")]  # (n_sets,), sorted

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: sets of more labels than there are."""
        if self.multiplicities.max(initial=1) > len(self.vectors):
            yield f"has sets of {self.multiplicities.max()} out of {len(self.vectors)} labels"

    @classmethod
    def of(cls, sets: LabelSets) -> Self:
        """Fit to the means of the sets seen, each counting by its samples.

        Vectors begin as the means of samples with one label, where there are such, and are then
        fitted by least squares, in turns with scales and offsets: so labels that never stand
        alone have theirs from the company they keep.
        """
        labelled = np.flatnonzero(sets.multiplicities > 0)
        regression = _MeanRegression(
            csr_matrix(sets.sets[labelled], dtype=np.float64),
            sets.means[labelled],
            sets.counts[labelled].astype(np.float64),
        )
        vectors = regression.first_vectors(*sets.single())
        scales, offsets = regression.fit_scales(vectors)
        for _ in range(_ROUNDS):
            vectors = regression.fit_vectors(vectors, scales, offsets)
            scales, offsets = regression.fit_scales(vectors)
        return cls(
            vectors,
            regression.multiplicities,
            scales,
            offsets,
            _least_inner(vectors),
            _seen_keys(sets.sets),
        )

    def means(self, sets: csr_matrix) -> FloatArray:
        """Return the means of label sets, `(sets, n_labels)`, whose multiplicities were seen."""
        which = np.searchsorted(self.multiplicities, np.diff(sets.indptr))
        sums = csr_matrix(sets, dtype=np.float64) @ self.vectors
        return np.asarray(self.offsets[which] + self.scales[which, None] * sums)

    def search(
        self, features: FloatArray, values: FloatArray, max_steps: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """Return unseen sets nearer than `values`, squared distances, which are updated in place.

        Labels of the nearest set, -1 where there are fewer, `(n, largest multiplicity)`; all -1
        where none is nearer. And whether it is proven that no set is nearer still, `(n,)`.
        """
        most = int(self.multiplicities.max(initial=1))
        found = np.full((len(features), most), -1, np.int32)
        proven = np.ones(len(features), np.bool_)
        norms, keys = (self.vectors**2).sum(axis=1), _keys(len(self.vectors))
        for start in range(0, len(features), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            for m, scale, offset in zip(
                self.multiplicities, self.scales, self.offsets, strict=True
            ):
                rest = features[rows] - offset
                costs = scale**2 * norms - 2 * scale * (rest @ self.vectors.T)
                search_sets(
                    rest, costs, self.vectors, scale, self.least, int(m), keys, self.seen,
                    max_steps, values[rows], found[rows], proven[rows],
                )  # fmt: skip
        return found, proven


@dataclass(frozen=True, eq=False)
class _MeanRegression:
    sets: csr_matrix  # (n_sets, n_labels)
    means: FloatArray  # (n_sets, d)
    weights: FloatArray  # (n_sets,)

    @property
    def sizes(self) -> IntArray:
        return np.diff(self.sets.indptr).astype(np.int64)

    @property
    def multiplicities(self) -> IntArray:
        return np.unique(self.sizes)

    def first_vectors(self, labels: IntArray, singles: FloatArray) -> FloatArray:
        """Return centered means of the samples with one label, else of all samples with it."""
        members = sparse.diags_array(self.weights) @ self.sets
        totals = np.asarray(members.sum(axis=0)).ravel()
        vectors = members.T @ self.means / np.maximum(totals, 1)[:, None]
        vectors[totals > 0] -= vectors[totals > 0].mean(axis=0)
        if len(labels) > 1:
            vectors[labels] = singles - singles.mean(axis=0)
        return np.asarray(vectors)

    def fit_scales(self, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scale and offset of each multiplicity by least squares."""
        sums = self.sets @ vectors
        fitted = [self._fit_scale(self.sizes == m, sums) for m in self.multiplicities]
        scales = np.array([scale for scale, _ in fitted])
        offsets = np.array([offset for _, offset in fitted])
        return scales, offsets.reshape(len(scales), vectors.shape[1])

    def _fit_scale(self, rows: npt.NDArray[np.bool_], sums: FloatArray) -> tuple[float, FloatArray]:
        weights = self.weights[rows] / self.weights[rows].sum()
        mean, mean_sum = weights @ self.means[rows], weights @ sums[rows]
        around, sums_around = self.means[rows] - mean, sums[rows] - mean_sum
        square = float(weights @ (sums_around**2).sum(axis=1))
        scale = float(weights @ (around * sums_around).sum(axis=1)) / square if square else 1.0
        return scale, np.asarray(mean - scale * mean_sum)

    def fit_vectors(
        self, vectors: FloatArray, scales: FloatArray, offsets: FloatArray
    ) -> FloatArray:
        """Return the labels' vectors by ridge regression, solved from the present ones."""
        which = np.searchsorted(self.multiplicities, self.sizes)
        design = sparse.diags_array(scales[which]) @ self.sets
        weighted = csr_matrix(sparse.diags_array(self.weights) @ design)
        target = weighted.T @ (self.means - offsets[which])
        design = csr_matrix(design)
        return _solve(lambda v: weighted.T @ (design @ v) + _RIDGE * v, target, vectors)


def _solve(
    product: Callable[[FloatArray], FloatArray],
    target: FloatArray,
    start: FloatArray,
    rounds: int = 30,
) -> FloatArray:
    """Conjugate gradients for many right-hand sides, one per column, at once."""
    solution = start.copy()
    rest = target - product(solution)
    direction, square = rest.copy(), (rest**2).sum(axis=0)
    goal = 1e-14 * (target**2).sum(axis=0) + 1e-300
    for _ in range(rounds):
        if (square <= goal).all():
            break
        ahead = product(direction)
        step = square / np.maximum((direction * ahead).sum(axis=0), 1e-300)
        solution += step * direction
        rest -= step * ahead
        before, square = square, (rest**2).sum(axis=0)
        direction = rest + square / np.maximum(before, 1e-300) * direction
    return solution


def _keys(n_labels: int) -> npt.NDArray[np.uint64]:
    """Numbers whose sums tell sets apart: two share one with a chance of 2^-64."""
    return np.random.default_rng(0).integers(2**64, size=n_labels, dtype=np.uint64)


def _seen_keys(sets: csr_matrix) -> npt.NDArray[np.uint64]:
    totals = np.zeros(sets.shape[0], np.uint64)
    rows = np.repeat(np.arange(sets.shape[0]), np.diff(sets.indptr))
    np.add.at(totals, rows, _keys(sets.shape[1])[sets.indices])
    return np.unique(totals)


def _least_inner(vectors: FloatArray) -> float:
    least = 0.0
    for start in range(0, len(vectors), _BLOCK_ROWS):
        products = vectors[start:] @ vectors[start : start + _BLOCK_ROWS].T
        np.fill_diagonal(products, 0)
        least = min(least, float(products.min()))
    return least
