"""A trained model: the encoder in numpy, and three vectors per label."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.sparse import csr_matrix
from scipy.special import erf

from umpteen.kernels.nearest import product
from umpteen.search import LabelIndex
from umpteen.storage import Given, OneOf, Shape, Sizes, storable
from umpteen.validation import Features, as_csr, unit_rows

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


@storable
@dataclass(frozen=True, eq=False)
class TrainedEncoder:
    """What `Encoder` computes; a row's bits do not depend on the rows beside it."""

    table: Annotated[FloatArray, Shape("features", "dim")]
    matrix: Annotated[FloatArray, Shape("dim", "dim")] | None
    activation: Annotated[str, OneOf("relu", "gelu")]

    def bags(self, X: Features) -> FloatArray:
        """f, the part before the residual block."""
        return self.bags_of_units(as_csr(unit_rows(as_csr(X))))

    def bags_of_units(self, X: csr_matrix) -> FloatArray:
        """The same for rows of length 1."""
        sums = X @ self.table
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

    The first two are compared with f, the classifier with the encoder's output. One search goes by
    the direction of the sum of all three: it finds nearly what one search for each would, in a
    third of the time.
    """

    encoder: Annotated[TrainedEncoder, Given("features", "dim")]
    texts: Annotated[FloatArray, Shape("labels", "dim")]  # as the others, of length 1 or zeros
    centroids: Annotated[FloatArray, Shape("labels", "dim")]
    classifiers: Annotated[FloatArray, Shape("labels", "dim")]
    index: Annotated[LabelIndex, Given("labels")]

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: an index over vectors of another length."""
        expected = self.texts.shape[1] * (1 if self.encoder.matrix is None else 2)
        if self.index.vectors.shape[1] != expected:
            yield f"has an index of {self.index.vectors.shape[1]} numbers, expected {expected}"

    @classmethod
    def of(
        cls,
        encoder: TrainedEncoder,
        texts: FloatArray,
        centroids: FloatArray,
        classifiers: FloatArray,
        **search: Any,
    ) -> "Tower":
        """With an index made as `search` says; a label without samples (zeros) has its text."""
        parts = texts, _else_text(centroids, texts), _units(classifiers)
        return cls(encoder, *parts, LabelIndex(_all_in_one(encoder, *parts), **search))

    def searched(self, **search: Any) -> "Tower":
        """With another index."""
        return Tower.of(self.encoder, self.texts, self.centroids, self.classifiers, **search)

    def nearest(self, bags: FloatArray, lifted: FloatArray, n: int, n_asked: int) -> IntArray:
        """(rows, n): the labels whose sums are nearest, in any order.

        `n_asked` rows in all are asked about, of which these are some: it decides how.
        """
        if self.encoder.matrix is None:
            return self.index.near(bags, n, n_asked)
        both = np.concatenate([lifted, bags], axis=1) / np.sqrt(np.float32(2))
        return self.index.near(both, n, n_asked)

    def cosines(self, bags: FloatArray, lifted: FloatArray, candidates: IntArray) -> FloatArray:
        """(3, n, candidates): to each candidate's own vector, its text and its centroid."""
        return np.asarray(
            products(lifted, bags, self.classifiers, self.texts, self.centroids, candidates)
        )

    def with_labels(self, label_features: Features, centroids: FloatArray) -> "Tower":
        """With further labels; where there is no centroid (zeros), the text stands for it."""
        texts = self.encoder.bags(label_features)
        new = texts, _else_text(centroids, texts), self.encoder.lift(texts)
        before = self.texts, self.centroids, self.classifiers
        index = _copied(self.index)
        index.add(_all_in_one(self.encoder, *new))
        joined = (np.concatenate(pair) for pair in zip(before, new, strict=True))
        texts, centroids, classifiers = joined
        return Tower(self.encoder, texts, centroids, classifiers, index)

    def without_labels(self, ids: IntArray) -> "Tower":
        """With labels that are never answered any more."""
        index = _copied(self.index)
        index.remove(ids)
        return replace(self, index=index)


def _all_in_one(
    encoder: TrainedEncoder, texts: FloatArray, centroids: FloatArray, classifiers: FloatArray
) -> FloatArray:
    """Sums of the three; the classifier apart if it is compared with another vector."""
    if encoder.matrix is None:
        return classifiers + texts + centroids
    return np.concatenate([classifiers, texts + centroids], axis=1)


def _else_text(centroids: FloatArray, texts: FloatArray) -> FloatArray:
    return np.where(np.any(centroids, axis=1, keepdims=True), centroids, texts)


def _copied(index: LabelIndex) -> LabelIndex:
    """One that can be changed without changing the other."""
    made = copy(index)
    made.present, made.graph = index.present.copy(), copy(index.graph)
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


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def products(lifted: Any, bags: Any, own: Any, texts: Any, centroids: Any, candidates: Any) -> Any:
    """(3, rows, candidates): a row's inner products with what is known of each label; 0 for -1."""
    n_rows, n_candidates = candidates.shape
    found = np.zeros((3, n_rows, n_candidates), np.float32)
    for row in range(n_rows):
        for place in range(n_candidates):
            label = candidates[row, place]
            if label < 0:
                continue
            by_own = by_text = by_centroid = np.float32(0)
            for i in range(bags.shape[1]):
                by_own += lifted[row, i] * own[label, i]
                by_text += bags[row, i] * texts[label, i]
                by_centroid += bags[row, i] * centroids[label, i]
            found[0, row, place] = by_own
            found[1, row, place] = by_text
            found[2, row, place] = by_centroid
    return found
