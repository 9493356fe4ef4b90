"""Features of labels: their own, or the centroid of their samples."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags

from umpteen.base import ExtremeClassifier
from umpteen.errors import FeaturesError, ParameterError
from umpteen.siamese.tower import TrainedEncoder
from umpteen.validation import as_csr, check_describes, check_features, check_labels, unit_rows

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


def checked_token_vectors(vectors: Any, n_features: int, dim: int) -> FloatArray | None:
    """Return the checked initial vectors of features, if any are given."""
    if vectors is None:
        return None
    table = check_features(vectors, name="token_vectors")
    if table.shape != (n_features, dim):
        raise FeaturesError(
            f"token_vectors has shape {table.shape}; expected {(n_features, dim)}: a row "
            "for each feature of X, and dim numbers in each"
        )
    return table.toarray() if isinstance(table, csr_matrix) else table


def checked_new_labels(
    model: ExtremeClassifier, X: Any, Y: Any, label_features: Any
) -> tuple[csr_matrix, csr_matrix, csr_matrix]:
    """Return features, samples and labels of samples, of labels that a model should add."""
    n_features = model.n_features_in_
    if (X is None) != (Y is None):
        given, missing = ("Y", "X") if X is None else ("X", "Y")
        raise ParameterError(
            f"add_labels got {given} without {missing}: pass samples X together with their labels "
            "Y, or label_features only"
        )
    if label_features is None:
        if Y is None:
            raise ParameterError(
                "add_labels got no labels: pass label_features, or samples X and their labels Y"
            )
        label_features = no_rows(check_labels(Y).shape[1], n_features)
    features = as_csr(
        check_features(
            label_features, n_features=n_features, name="label_features", model=type(model).__name__
        )
    )
    if X is None:
        return features, no_rows(0, n_features), no_rows(0, features.shape[0])
    samples = as_csr(model._check_predict(X))
    labels = check_labels(Y, n_samples=samples.shape[0])
    check_describes(features, labels.shape[1])
    return features, samples, labels


def complete(label_features: csr_matrix, X: csr_matrix, Y: csr_matrix) -> csr_matrix:
    """Return features of labels; of those without any, the centroid of their samples."""
    filled = np.asarray(abs(label_features).sum(axis=1)).ravel() > 0
    if filled.all() or Y.nnz == 0:
        return label_features
    missing = csr_matrix(diags((~filled).astype(np.float32)) @ Y.T @ unit_rows(X))
    missing.sort_indices()
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
