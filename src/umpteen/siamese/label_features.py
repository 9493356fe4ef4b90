"""Features of labels: their own, or the centroid of their samples."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags

from umpteen.siamese.tower import TrainedEncoder
from umpteen.validation import as_csr, check_describes, check_features, unit_rows

FloatArray = npt.NDArray[np.float32]


def checked_label_features(label_features: Any, n_features: int, n_labels: int) -> csr_matrix:
    """Return checked label features; without any, all rows are empty."""
    if label_features is None:
        return no_rows(n_labels, n_features)
    features = check_features(
        label_features, n_features=n_features, name="label_features", model="X"
    )
    check_describes(features, n_labels)
    return as_csr(features)


def complete(label_features: csr_matrix, X: csr_matrix, Y: csr_matrix) -> csr_matrix:
    """Return features of labels; of those without any, the centroid of their samples."""
    filled = np.asarray(abs(label_features).sum(axis=1)).ravel() > 0
    if filled.all() or Y.nnz == 0:
        return label_features
    missing = csr_matrix(diags((~filled).astype(np.float32)) @ Y.T @ unit_rows(X))
    return csr_matrix(label_features + missing, dtype=np.float32)


def centroids_of(encoder: TrainedEncoder, X: csr_matrix, Y: csr_matrix) -> FloatArray:
    """Return the mean direction of each label's samples, zeros where there are none."""
    return mean_directions(Y, encoder.bags(X))


def mean_directions(Y: csr_matrix, vectors: FloatArray) -> FloatArray:
    """Return the mean direction of the vectors of each label's samples."""
    return np.asarray(unit_rows(np.asarray(csr_matrix(Y.T) @ vectors, np.float32)))


def no_rows(n_rows: int, n_columns: int) -> csr_matrix:
    """Return a matrix without entries."""
    nothing: tuple[Any, ...] = (np.zeros(0, np.float32), np.zeros(0, np.int32))
    indptr = np.zeros(n_rows + 1, np.int32)
    return csr_matrix((*nothing, indptr), shape=(n_rows, n_columns))
