"""A trained model: the encoder in numpy, and three vectors per label."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import erf

from umpteen import scratch
from umpteen.kernels.compiling import frozen
from umpteen.kernels.label_evidence import label_products, rows_times_matrix
from umpteen.search import LabelIndex
from umpteen.storage import Given, OneOf, Shape, Sizes, Within, storable
from umpteen.validation import Features, as_csr, unit_rows

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
_MOST = 1e30  # of weights: products of larger ones would be infinite
SCALE = 10.0  # of logistic scores: log-odds per unit of an inner product of unit vectors


def log_odds(counts: npt.NDArray[np.integer], n_samples: int) -> FloatArray:
    """Return the log-odds of labels with so many samples, each counted with half a sample more.

    >>> log_odds(np.array([0, 5]), 10).round(2)
    array([-3.04,  0.  ], dtype=float32)
    """
    more = np.minimum(counts, n_samples) + 0.5
    return np.asarray(np.log(more / (n_samples + 1 - more)), np.float32)


@storable
@dataclass(frozen=True, eq=False)
class TrainedEncoder:
    """What `Encoder` computes; a row's bits do not depend on the rows beside it."""

    table: Annotated[FloatArray, Shape("features", "dim")]
    matrix: Annotated[FloatArray, Shape("dim", "dim")] | None
    activation: Annotated[str, OneOf("relu", "gelu", "linear")]

    def bags(self, X: Features) -> FloatArray:
        """Return f, which comes before the residual block."""
        return self.bags_of_units(as_csr(scratch.unit_rows(as_csr(X))))

    def bags_of_units(self, X: csr_matrix) -> FloatArray:
        """Return f of rows that have length 1."""
        sums = X @ self.table
        if self.activation == "relu":
            return _units(np.maximum(sums, 0))
        if self.activation == "linear":
            return _units(sums)
        return _units(sums * (0.5 + 0.5 * erf(sums / np.sqrt(2.0))))

    def lift(self, bags: FloatArray) -> FloatArray:
        """Apply the residual block."""
        if self.matrix is None:
            return bags
        return _units(bags + np.maximum(rows_times_matrix(*frozen((bags, self.matrix))), 0))


@storable
@dataclass(frozen=True, eq=False)
class Tower:
    """The encoder, and of each label its text, its centroid and its classifier.

    The first two are compared with f, the classifier with the encoder's output. Classifiers have
    length 1, or any length if they are logistic: then there are biases, and scores are log-odds.
    One search goes by the sum of the three directions: it finds nearly what one search for each
    would, in a third of the time.
    """

    encoder: Annotated[TrainedEncoder, Given("features", "dim")]
    texts: Annotated[FloatArray, Shape("labels", "dim"), Within(-2, 2)]  # of length 1 or zeros
    centroids: Annotated[FloatArray, Shape("labels", "dim"), Within(-2, 2)]  # as texts
    classifiers: Annotated[FloatArray, Shape("labels", "dim"), Within(-_MOST, _MOST)]
    index: Annotated[LabelIndex, Given("labels")]
    # None: classifiers are cosines
    biases: Annotated[FloatArray, Shape("labels"), Within(-_MOST, _MOST)] | None = None

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
        biases: FloatArray | None = None,
        **search: Any,
    ) -> "Tower":
        """Make a tower with an index; a label without a centroid (zeros) has its text instead."""
        centroids, own = _else_text(centroids, texts), _units(classifiers)
        index = LabelIndex(_all_in_one(encoder, texts, centroids, own), **search)
        kept = own if biases is None else np.asarray(classifiers, np.float32)
        return cls(encoder, texts, centroids, kept, index, biases)

    def searched(self, **search: Any) -> "Tower":
        """Return a tower with another index."""
        vectors = self.texts, self.centroids, self.classifiers
        return Tower.of(self.encoder, *vectors, self.biases, **search)

    def nearest(self, bags: FloatArray, lifted: FloatArray, n: int, n_asked: int) -> IntArray:
        """Return (rows, n): the labels whose sums are nearest, in any order.

        `n_asked` rows in all are asked about, of which these are some: it decides how.
        """
        if self.encoder.matrix is None:
            return self.index.near(bags, n, n_asked)
        both = np.concatenate([lifted, bags], axis=1) / np.sqrt(np.float32(2))
        return self.index.near(both, n, n_asked)

    def products(self, bags: FloatArray, lifted: FloatArray, candidates: IntArray) -> FloatArray:
        """Return (3, n, candidates): scores by own vector, cosines to text and to centroid."""
        vectors = lifted, bags, self.classifiers, self.texts, self.centroids
        found = np.asarray(label_products(*frozen(vectors), candidates))
        if self.biases is not None:
            found[0] += np.where(candidates >= 0, self.biases[candidates], np.float32(0))
        return found

    def with_labels(
        self, label_features: Features, centroids: FloatArray, odds: FloatArray
    ) -> "Tower":
        """Return a tower with further labels, which have what training would begin with.

        That is the text, if there is a centroid also the centroid, and the bias `odds`.
        """
        texts = self.encoder.bags(label_features)
        own, biases = self.encoder.lift(texts), None
        if self.biases is not None:
            mean = (own + self.encoder.lift(centroids)) / 2
            own = np.float32(SCALE) * np.where(centroids.any(axis=1, keepdims=True), mean, own)
            biases = np.concatenate([self.biases, odds])
        new = texts, _else_text(centroids, texts), own
        before = self.texts, self.centroids, self.classifiers
        index = _copied(self.index)
        index.add(_all_in_one(self.encoder, *new[:2], _units(own)))
        joined = (np.concatenate(pair) for pair in zip(before, new, strict=True))
        texts, centroids, classifiers = joined
        return Tower(self.encoder, texts, centroids, classifiers, index, biases)

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
