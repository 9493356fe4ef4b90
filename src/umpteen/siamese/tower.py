"""A trained model: the encoder in numpy, and three vectors per label."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import erf

from umpteen.kernels.label_evidence import label_products, rows_times_matrix
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
        """Return f, which comes before the residual block."""
        return self.bags_of_units(as_csr(unit_rows(as_csr(X))))

    def bags_of_units(self, X: csr_matrix) -> FloatArray:
        """Return f of rows that have length 1."""
        sums = X @ self.table
        if self.activation == "relu":
            return _units(np.maximum(sums, 0))
        return _units(sums * (0.5 + 0.5 * erf(sums / np.sqrt(2.0))))

    def lift(self, bags: FloatArray) -> FloatArray:
        """Apply the residual block."""
        if self.matrix is None:
            return bags
        return _units(bags + np.maximum(rows_times_matrix(bags, self.matrix), 0))


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
        """Make a tower with an index; a label without a centroid (zeros) has its text instead."""
        vectors = texts, _else_text(centroids, texts), _units(classifiers)
        return cls(encoder, *vectors, LabelIndex(_all_in_one(encoder, *vectors), **search))

    def searched(self, **search: Any) -> "Tower":
        """Return a tower with another index."""
        return Tower.of(self.encoder, self.texts, self.centroids, self.classifiers, **search)

    def nearest(self, bags: FloatArray, lifted: FloatArray, n: int, n_asked: int) -> IntArray:
        """Return (rows, n): the labels whose sums are nearest, in any order.

        `n_asked` rows in all are asked about, of which these are some: it decides how.
        """
        if self.encoder.matrix is None:
            return self.index.near(bags, n, n_asked)
        both = np.concatenate([lifted, bags], axis=1) / np.sqrt(np.float32(2))
        return self.index.near(both, n, n_asked)

    def cosines(self, bags: FloatArray, lifted: FloatArray, candidates: IntArray) -> FloatArray:
        """Return (3, n, candidates): cosines to own vector, text and centroid of candidates."""
        return np.asarray(
            label_products(lifted, bags, self.classifiers, self.texts, self.centroids, candidates)
        )

    def with_labels(self, label_features: Features, centroids: FloatArray) -> "Tower":
        """Return a tower with further labels; without a centroid (zeros), the text is used."""
        texts = self.encoder.bags(label_features)
        new = texts, _else_text(centroids, texts), self.encoder.lift(texts)
        before = self.texts, self.centroids, self.classifiers
        index = _copied(self.index)
        index.add(_all_in_one(self.encoder, *new))
        joined = (np.concatenate(pair) for pair in zip(before, new, strict=True))
        texts, centroids, classifiers = joined
        return Tower(self.encoder, texts, centroids, classifiers, index)

    def without_labels(self, ids: IntArray) -> "Tower":
        """Return a tower that never answers some labels."""
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
