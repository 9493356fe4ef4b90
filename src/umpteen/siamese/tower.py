"""A trained model: the encoder in numpy, and three vectors per label."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.sparse import csr_matrix
from scipy.special import erf

from umpteen.kernels.nearest import product
from umpteen.search import LabelIndex
from umpteen.storage import storable
from umpteen.validation import Features, as_csr, unit_rows

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


@storable
@dataclass(frozen=True, eq=False)
class TrainedEncoder:
    """What `Encoder` computes; a row's bits do not depend on the rows beside it."""

    table: FloatArray  # (n_features, dim)
    matrix: FloatArray | None  # (dim, dim)
    activation: str

    def bags(self, X: Features) -> FloatArray:
        """f, the part before the residual block."""
        sums = csr_matrix(unit_rows(as_csr(X))) @ self.table
        if self.activation == "relu":
            return _units(np.maximum(sums, 0))
        return _units(sums * (0.5 + 0.5 * erf(sums / np.sqrt(2.0))))

    def lift(self, bags: FloatArray) -> FloatArray:
        """The residual block."""
        if self.matrix is None:
            return bags
        return _units(bags + np.maximum(_products(bags, self.matrix), 0))


@storable
@dataclass(frozen=True, eq=False)
class Tower:
    """The encoder, and of each label its text, its centroid and its classifier.

    The first two are compared with f, the classifier with the encoder's output.
    """

    encoder: TrainedEncoder
    texts: LabelIndex
    centroids: LabelIndex
    classifiers: LabelIndex

    def shortlist(self, bags: FloatArray, lifted: FloatArray, n_each: int) -> IntArray:
        """(n, 3 n_each): the nearest labels by each of the three; some may stand there twice."""
        return np.concatenate(
            [
                self.texts.topk(bags, n_each).labels,
                self.centroids.topk(bags, n_each).labels,
                self.classifiers.topk(lifted, n_each).labels,
            ],
            axis=1,
        )

    def cosines(self, bags: FloatArray, lifted: FloatArray, candidates: IntArray) -> FloatArray:
        """(3, n, candidates): to each candidate's own vector, its text and its centroid."""
        by_own = pair_products(lifted, self.classifiers.vectors, candidates)
        by_text = pair_products(bags, self.texts.vectors, candidates)
        by_centroid = pair_products(bags, self.centroids.vectors, candidates)
        return np.stack([by_own, by_text, by_centroid])

    def with_labels(self, label_features: Features, centroids: FloatArray) -> "Tower":
        """With further labels; where there is no centroid (zeros), the text stands for it."""
        bags = self.encoder.bags(label_features)
        known = np.any(centroids, axis=1, keepdims=True)
        return replace(
            self,
            texts=_extended(self.texts, bags),
            centroids=_extended(self.centroids, np.where(known, centroids, bags)),
            classifiers=_extended(self.classifiers, self.encoder.lift(bags)),
        )

    def without_labels(self, ids: IntArray) -> "Tower":
        """With labels that are never answered any more."""
        return replace(
            self,
            texts=_without(self.texts, ids),
            centroids=_without(self.centroids, ids),
            classifiers=_without(self.classifiers, ids),
        )


def _copied(index: LabelIndex) -> LabelIndex:
    """One that can be changed without changing the other."""
    made = copy(index)
    made.present, made.graph = index.present.copy(), copy(index.graph)
    return made


def _extended(index: LabelIndex, vectors: FloatArray) -> LabelIndex:
    made = _copied(index)
    made.add(vectors)
    return made


def _without(index: LabelIndex, ids: IntArray) -> LabelIndex:
    made = _copied(index)
    made.remove(ids)
    return made


def _units(rows: Any) -> FloatArray:
    return np.asarray(unit_rows(np.ascontiguousarray(rows, np.float32)))


@njit(nogil=True, cache=True)
def _products(rows: Any, matrix: Any) -> Any:
    """rows @ matrix.T in one fixed order of sums."""
    made = np.empty((len(rows), len(matrix)), np.float32)
    for row in range(len(rows)):
        for column in range(len(matrix)):
            made[row, column] = product(rows[row], matrix[column])
    return made


@njit(nogil=True, cache=True)
def pair_products(queries: Any, vectors: Any, candidates: Any) -> Any:
    """The inner product of each query and each of its candidates (queries, any); 0 for -1."""
    scores = np.zeros(candidates.shape, np.float32)
    for row in range(candidates.shape[0]):
        for place in range(candidates.shape[1]):
            label = candidates[row, place]
            if label >= 0:
                scores[row, place] = product(queries[row], vectors[label])
    return scores
