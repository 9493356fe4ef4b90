"""Few features out of many, at unit variance: principal components, or what tells classes apart."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import eigh, qr, svd
from scipy.sparse import csc_matrix, csr_matrix

from umpteen import parallel
from umpteen.kernels.noise_tree import reduce_dense, reduce_sparse
from umpteen.kernels.topk import frozen_csr
from umpteen.storage import Shape, Within, storable
from umpteen.validation import Features

_MOST_EXACT = 2048  # features of dense rows whose covariance is decomposed as it is
_MOST_COMPONENTS = 256  # among which directions are looked for, where features are more
_OVERSAMPLES = 10
_POWER_ROUNDS = 5
_BLOCK_ENTRIES = 2**22  # of dense rows held in float64: 32 MB
_BLOCK_ROWS = 8192
_LEAST_SHARE = 1e-10  # of the largest variance: below it is rounding
_MOST = 1e38  # in float32, more is infinite
_LEAST_SPREAD = 1e-12  # of the mean square: float32 rows that differ by less are all equal

FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]


@storable
@dataclass(eq=False)
class Reduction:
    """z = (x.components - offset) * scale: mean 0 and variance 1 over the rows it was made of."""

    components: Annotated[FloatArray, Shape("features", "dim"), Within(-2, 2)]  # unit columns
    offset: Annotated[DoubleArray, Shape("dim"), Within(-_MOST, _MOST)]
    scale: Annotated[DoubleArray, Shape("dim"), Within(0, _MOST)]

    @classmethod
    def of(cls, X: Features, dim: int, seed: int) -> "Reduction":
        """Return the `dim` directions in which rows differ most; fewer where they differ in fewer.

        Exact for dense rows of at most 2,048 features, else by randomised subspace iteration
        (Halko et al. 2011), which takes the mean off in every product and never in the matrix.
        """
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        if isinstance(X, np.ndarray) and X.shape[1] <= _MOST_EXACT:
            variances, directions = _exact(X, mean, dim)
        else:
            variances, directions = _randomised(X, mean, dim, seed)
        least = max(_LEAST_SHARE * variances.max(initial=0), _LEAST_SPREAD * _mean_square(X))
        kept = variances > least
        components = np.ascontiguousarray(directions[:, kept], np.float32)
        return cls(components, mean @ components, 1 / np.sqrt(variances[kept]))

    @classmethod
    def between_classes(cls, X: Features, Y: csr_matrix, dim: int, seed: int) -> "Reduction":
        """Return the `dim` directions in which class means differ most (linear discriminants).

        That is relative to how rows differ in all: directions in which rows of one class differ
        as much as those of others count for nothing. They are found among all features of dense
        rows, up to 2,048, else among the first few hundred principal components.
        """
        few = isinstance(X, np.ndarray) and X.shape[1] <= _MOST_EXACT
        whole = cls.of(X, X.shape[1] if few else _MOST_COMPONENTS, seed)
        rows = whole(X)
        directions = _discriminants(rows, Y, min(dim, rows.shape[1]))
        turned = (whole.components * whole.scale) @ directions  # of the features themselves
        lengths = np.linalg.norm(turned, axis=0)
        components = np.ascontiguousarray(turned / lengths, np.float32)
        mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        return cls(components, mean @ components, lengths)

    def __call__(self, X: Features, n_jobs: int | None = -1) -> FloatArray:
        """The rows reduced, `(n, dim)`; each by itself, whatever the other rows are."""
        starts = range(0, max(X.shape[0], 1), _BLOCK_ROWS)
        return np.concatenate(parallel.run(lambda i: self._block(X, i), starts, n_jobs=n_jobs))

    def _block(self, X: Features, first: int) -> FloatArray:
        rows, to = X[first : first + _BLOCK_ROWS], (self.components, self.offset, self.scale)
        if sparse.issparse(rows):
            return reduce_sparse(*frozen_csr(rows), *to)  # type: ignore[no-any-return]
        return reduce_dense(rows, *to)  # type: ignore[no-any-return]


def _discriminants(rows: FloatArray, Y: csr_matrix, dim: int) -> DoubleArray:
    """Return orthonormal directions, largest scatter of class means first.

    Rows have unit covariance. A mean of few rows scatters by itself: what is expected of that, if
    classes did not differ, is the same in every direction.
    """
    given = csc_matrix((np.ones(Y.nnz), Y.indices, Y.indptr), shape=Y.shape[::-1])
    counts = np.maximum(np.asarray(given.sum(axis=1)).ravel(), 1.0)
    sums = np.asarray(given @ rows, np.float64)
    scatter = (sums / counts[:, None]).T @ sums
    size = rows.shape[1]
    return np.asarray(eigh(scatter, subset_by_index=(size - dim, size - 1))[1][:, ::-1])


def _exact(X: FloatArray, mean: DoubleArray, dim: int) -> tuple[DoubleArray, DoubleArray]:
    """The largest variances and their directions, largest first."""
    n, d = X.shape
    covariance = np.zeros((d, d))
    size = max(1, _BLOCK_ENTRIES // d)
    for first in range(0, n, size):
        block = X[first : first + size] - mean
        covariance += block.T @ block
    values, vectors = eigh(covariance / n, subset_by_index=(max(d - dim, 0), d - 1))
    return values[::-1], vectors[:, ::-1]


def _randomised(
    X: Features, mean: DoubleArray, dim: int, seed: int
) -> tuple[DoubleArray, DoubleArray]:
    """As `_exact`, of a random subspace that is turned towards the largest."""
    n, d = X.shape
    width = min(dim + _OVERSAMPLES, n, d)

    def along(directions: DoubleArray) -> DoubleArray:  # (n, width)
        return np.asarray(X @ directions) - mean @ directions

    def back(columns: DoubleArray) -> DoubleArray:  # (d, width)
        return np.asarray(X.T @ columns) - np.outer(mean, columns.sum(axis=0))

    basis = _orthogonal(along(np.random.default_rng(seed).standard_normal((d, width))))
    for _ in range(_POWER_ROUNDS):
        basis = _orthogonal(along(_orthogonal(back(basis))))
    directions = svd(back(basis), full_matrices=False)[0][:, :dim]
    return np.square(along(directions)).mean(axis=0), directions


def _orthogonal(columns: DoubleArray) -> DoubleArray:
    return np.asarray(qr(columns, mode="economic")[0], np.float64)


def _mean_square(X: Features) -> float:
    values = X.data if sparse.issparse(X) else X
    return float(np.square(values, dtype=np.float64).sum() / X.shape[0])
