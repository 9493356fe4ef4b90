"""Linear scores x.w_y + b_y of very many classes: how they are kept, computed and trained.

Dense features have a weight for every class. With sparse features, a class has weights only for
features of its own training samples: a weight for any other feature could only lower the score, and
without these, weights take as much room as the samples do (docs/softmax.md).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from umpteen.kernels.sampled_softmax import (
    Rules,
    Weights,
    pair_scores_dense,
    pair_scores_sparse,
    train_dense,
    train_sparse,
)
from umpteen.kernels.topk import frozen_csr
from umpteen.storage import Shape, Sizes, storable
from umpteen.validation import Features

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
_FIRST_SQUARE = 1e-8  # in Adagrad's sums: the first step is as long as the learning rate


@storable
@dataclass(eq=False)
class DenseScores:
    """Every class has a weight for every feature."""

    weights: Annotated[FloatArray, Shape("labels", "features")]
    biases: Annotated[FloatArray, Shape("labels")]
    weight_squares: FloatArray  # sums of squared gradients, which Adagrad divides by
    bias_squares: Annotated[FloatArray, Shape("labels")]

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: squared gradients of the wrong shape."""
        n_classes, n_features = self.weights.shape
        if self.weight_squares.shape not in ((n_classes, 1), (n_classes, n_features)):
            yield f"has squares of shape {self.weight_squares.shape}"

    @classmethod
    def zeros(cls, n_classes: int, n_features: int) -> Self:
        """Return scores that are zero everywhere."""
        shape = (n_classes, n_features)
        return cls(
            np.zeros(shape, np.float32), np.zeros(n_classes, np.float32),
            np.full(shape, _FIRST_SQUARE, np.float32),
            np.full(n_classes, _FIRST_SQUARE, np.float32),
        )  # fmt: skip

    def table(self, X: Features) -> FloatArray:
        """Return scores of all classes, `(n, n_classes)`."""
        return np.asarray(X @ self.weights.T + self.biases, np.float32)

    def of_pairs(self, X: Features, labels: IntArray) -> FloatArray:
        """Return scores of given classes, `(n, m)`; -inf where a label is -1."""
        return np.asarray(pair_scores_dense(self._arrays(), np.asarray(X), labels))

    def train(
        self, rules: Rules, X: Features, rows: IntArray, labels: IntArray, logs: FloatArray,
        bounds: npt.NDArray[np.float64], share: float,
    ) -> None:  # fmt: skip
        """Train in one pass over visits of rows, see `kernels.sampled_softmax`."""
        train_dense(self._arrays(), rules, X, rows, labels, logs, bounds, share)

    def compact(self) -> Self:
        """Return a copy for prediction: of squared gradients, a class keeps only the mean."""
        squares = self.weight_squares.mean(axis=1, keepdims=True)
        return type(self)(
            self.weights.copy(), self.biases.copy(), squares, self.bias_squares.copy()
        )

    def trainable(self) -> Self:
        """Return a copy of compact scores that can be trained on."""
        squares = np.broadcast_to(self.weight_squares, self.weights.shape).copy()
        return type(self)(
            self.weights.copy(), self.biases.copy(), squares, self.bias_squares.copy()
        )

    def _arrays(self) -> Weights:
        return Weights(self.weights, self.biases, self.weight_squares, self.bias_squares)


@storable
@dataclass(eq=False)
class SparseScores:
    """A class has weights at the features of its own samples."""

    weights: Annotated[csr_matrix, Shape("labels", "features")]  # with explicit zeros
    biases: Annotated[FloatArray, Shape("labels")]
    weight_squares: FloatArray  # as the weights' data
    bias_squares: Annotated[FloatArray, Shape("labels")]

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: squared gradients of the wrong shape."""
        if self.weight_squares.shape not in ((len(self.biases),), (self.weights.nnz,)):
            yield f"has squares of shape {self.weight_squares.shape}"
        if self.weights.dtype != np.float32:
            yield f"has weights of {self.weights.dtype}"

    @classmethod
    def zeros(cls, X: csr_matrix, Y: csr_matrix) -> Self:
        """Return scores that are zero everywhere; a class has weights for its own features."""
        support = _support(X, Y)
        support.data = np.zeros(support.nnz, np.float32)
        squares = np.full(support.nnz, _FIRST_SQUARE, np.float32)
        n_classes = Y.shape[1]
        return cls(
            support, np.zeros(n_classes, np.float32), squares,
            np.full(n_classes, _FIRST_SQUARE, np.float32),
        )  # fmt: skip

    def widened(self, X: csr_matrix, Y: csr_matrix) -> Self:
        """Return scores with room for the features of more samples."""
        marks = _support(X, Y) + csr_matrix(
            (np.ones(self.weights.nnz, np.float32), self.weights.indices, self.weights.indptr),
            shape=self.weights.shape,
        )
        marks.sort_indices()
        old = _places(marks, self.weights)
        weights, squares = np.zeros(marks.nnz, np.float32), np.full(marks.nnz, _FIRST_SQUARE)
        weights[old], squares[old] = self.weights.data, self.weight_squares
        marks.data = weights
        return type(self)(marks, self.biases, squares.astype(np.float32), self.bias_squares)

    def set_weights(self, weights: csr_matrix) -> None:
        """Set weights, all of which are at features that the classes have."""
        self.weights.data[_places(self.weights, weights)] = weights.data

    def table(self, X: Features) -> FloatArray:
        """Return scores of all classes, `(n, n_classes)`."""
        scores = (csr_matrix(X) @ self.weights.T).toarray()
        scores += self.biases
        return np.asarray(scores, np.float32)

    def of_pairs(self, X: Features, labels: IntArray) -> FloatArray:
        """Return scores of given classes, `(n, m)`; -inf where a label is -1."""
        rows = frozen_csr(csr_matrix(X))
        return np.asarray(pair_scores_sparse(self._arrays(), self._support(), rows, labels))

    def train(
        self, rules: Rules, X: Features, rows: IntArray, labels: IntArray, logs: FloatArray,
        bounds: npt.NDArray[np.float64], share: float,
    ) -> None:  # fmt: skip
        """Train in one pass over visits of rows, see `kernels.sampled_softmax`."""
        train_sparse(
            self._arrays(),
            self._support(),
            rules,
            frozen_csr(csr_matrix(X)),
            rows,
            labels,
            logs,
            bounds,
            share,
        )

    def compact(self) -> Self:
        """Return a copy for prediction: of squared gradients, a class keeps only the mean."""
        sums = np.bincount(self._classes(), self.weight_squares, len(self.biases))
        squares = (sums / np.maximum(np.diff(self.weights.indptr), 1)).astype(np.float32)
        return type(self)(
            self.weights.copy(), self.biases.copy(), squares, self.bias_squares.copy()
        )

    def trainable(self) -> Self:
        """Return a copy of compact scores that can be trained on."""
        squares = self.weight_squares[self._classes()]
        return type(self)(
            self.weights.copy(), self.biases.copy(), squares, self.bias_squares.copy()
        )

    def _classes(self) -> npt.NDArray[np.intp]:
        """The class of each weight."""
        return np.repeat(np.arange(len(self.biases)), np.diff(self.weights.indptr))

    def _arrays(self) -> Weights:
        return Weights(self.weights.data, self.biases, self.weight_squares, self.bias_squares)

    def _support(self) -> tuple[npt.NDArray[np.int64], IntArray]:
        return self.weights.indptr.astype(np.int64), self.weights.indices


def in_its_form(X: Features, sparse: bool | None = None) -> Features:
    """Return sparse rows, or an array if over a third of all values are not zero; or as asked.

    Entries that are stored but zero are dropped: they would be features of their own.
    """
    if sparse is None:
        n_values = np.count_nonzero(X.data if issparse(X) else X)
        sparse = 3 * n_values <= X.shape[0] * X.shape[1]
    if not sparse:
        return X.toarray() if issparse(X) else X
    X = csr_matrix(X)
    if not X.data.all():
        X = X.copy()
        X.eliminate_zeros()
    return X


def new_scores(X: Features, Y: csr_matrix) -> DenseScores | SparseScores:
    """Return scores that are all zero, for the features and classes of training data."""
    if issparse(X):
        return SparseScores.zeros(X, Y)
    return DenseScores.zeros(Y.shape[1], X.shape[1])


def _support(X: csr_matrix, Y: csr_matrix) -> csr_matrix:
    """Return which features the samples of each class have; all data positive."""
    ones = csr_matrix((np.ones(X.nnz, np.float32), X.indices, X.indptr), shape=X.shape)
    given = csr_matrix((np.ones(Y.nnz, np.float32), Y.indices, Y.indptr), shape=Y.shape)
    support = csr_matrix(given.T @ ones)
    support.sort_indices()
    return support


def _places(wide: csr_matrix, narrow: csr_matrix) -> npt.NDArray[np.int64]:
    """Return the places of the entries of `narrow` in `wide`, which has them all."""
    width = wide.shape[1]
    keys = [
        np.repeat(np.arange(each.shape[0]), np.diff(each.indptr)) * width + each.indices
        for each in (wide, narrow)
    ]
    return np.asarray(np.searchsorted(keys[0], keys[1]), np.int64)
