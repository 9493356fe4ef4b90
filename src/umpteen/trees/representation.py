"""What a label looks like: the samples that carry it, its own features, or both."""

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from umpteen.validation import Features


def label_representation(
    X: Features,
    Y: csr_matrix,
    label_features: Features | None = None,
    label_features_weight: float = 0.5,
) -> csr_matrix:
    """Return a unit row for each label: the mean direction of its samples, or zeros if none.

    With `label_features` the row is a blend, `(1 - weight) * samples + weight * features`; a
    label with only one of the two is represented by that one.

    >>> label_representation(csr_matrix([[3.0, 0.0], [0.0, 2.0]]), csr_matrix([[1, 1], [0, 1]]))[
    ...     1
    ... ].toarray().round(2)
    array([[0.71, 0.71]], dtype=float32)
    """
    of_samples = normalize(csr_matrix(Y.T) @ normalize(csr_matrix(X)), copy=False)
    if label_features is None:
        return _canonical(of_samples)
    of_features = normalize(csr_matrix(label_features))
    blend = (1 - label_features_weight) * of_samples + label_features_weight * of_features
    return _canonical(normalize(blend, copy=False))


def _canonical(rows: csr_matrix) -> csr_matrix:
    rows = csr_matrix(rows, dtype=np.float32)
    rows.sum_duplicates()
    return rows
