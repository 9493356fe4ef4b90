"""Samples by their whole set of labels."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen.errors import FeaturesError
from umpteen.validation import check_features, check_labels

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelSets:
    """The distinct label sets of samples, with the mean of the features of each.

    Sets stand in the order in which they first come up.

    >>> found = LabelSets.of(np.array([[0.0], [1.0], [4.0]]), [[0, 2], [1], [0, 2]])
    >>> found.sets.toarray().astype(int), found.means.ravel(), found.which
    (array([[1, 0, 1],
           [0, 1, 0]]), array([2., 1.]), array([0, 1, 0]))
    """

    features: FloatArray  # (n, d)
    which: IntArray  # (n,) the set of each sample
    sets: csr_matrix  # (n_sets, n_labels)
    means: FloatArray  # (n_sets, d)
    counts: IntArray  # (n_sets,) samples

    @classmethod
    def of(cls, features: Any, Y: Any) -> Self:
        """Return the sets of features `(n, d)` and of what `fit` takes for labels."""
        features = dense_features(features)
        labels = check_labels(Y, n_samples=len(features))
        sets, which = distinct_rows(labels)
        counts = np.bincount(which, minlength=sets.shape[0])
        means = np.zeros((len(counts), features.shape[1]))
        if len(counts):
            members = csr_matrix((np.ones(len(which)), (which, np.arange(len(which)))))
            means = members @ features / counts[:, None]
        return cls(features, which, sets, means, counts)

    @property
    def multiplicities(self) -> IntArray:
        """The number of labels in each set, `(n_sets,)`."""
        return np.diff(self.sets.indptr).astype(np.int64)

    def single(self) -> tuple[IntArray, FloatArray]:
        """Return the labels that some samples have as their only one, and those samples' means."""
        alone = np.flatnonzero(self.multiplicities == 1)
        labels = self.sets[alone].indices.astype(np.int64)
        order = np.argsort(labels)
        return labels[order], self.means[alone[order]]


def dense_features(features: Any, n_features: int | None = None) -> FloatArray:
    """Return checked features as an array of float64 `(n, d)`."""
    if sparse.issparse(features):
        raise FeaturesError(
            "features are sparse; expected the dense features of a network's last layer, (n, d)"
        )
    checked = check_features(features, n_features=n_features, name="features")
    return np.asarray(checked, np.float64)


def distinct_rows(labels: csr_matrix) -> tuple[csr_matrix, IntArray]:
    """Return the distinct rows of a canonical CSR indicator, and which of them each row is."""
    first: dict[bytes, int] = {}
    rows: list[int] = []
    which = np.empty(labels.shape[0], np.int64)
    for row, (start, end) in enumerate(zip(labels.indptr, labels.indptr[1:], strict=False)):
        key = labels.indices[start:end].tobytes()
        if key not in first:
            first[key] = len(rows)
            rows.append(row)
        which[row] = first[key]
    return csr_matrix(labels[rows]), which
