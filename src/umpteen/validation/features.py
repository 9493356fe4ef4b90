"""Features: `X`, and features of labels."""

import math
from copy import copy
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen.errors import FeaturesError, LabelsShapeError
from umpteen.kernels.checks import is_clean
from umpteen.kernels.topk import frozen_csr
from umpteen.validation.arrays import as_array, as_float32, canonical_csr, index_dtype
from umpteen.validation.columns import plain

Features: TypeAlias = csr_matrix | npt.NDArray[np.float32]

_PLAIN_ARRAYS = {np.ndarray, np.memmap}


def check_features(
    X: Any, *, n_features: int | None = None, name: str = "X", model: str = "model"
) -> Features:
    """Return `X` as canonical CSR or C-ordered array of float32, with one row per sample.

    >>> check_features([[0, 1], [2, 3]])
    array([[0., 1.],
           [2., 3.]], dtype=float32)
    """
    X = plain(X, name, FeaturesError)
    features = _sparse_features(X, name) if sparse.issparse(X) else _dense_features(X, name)
    if n_features is not None and features.shape[1] != n_features:
        raise FeaturesError(
            f"{name} has {features.shape[1]:,} features, but {model} is expecting {n_features:,} "
            "features as input; use the same vectorizer (not fitted again) as in training"
        )
    return features


def as_csr(X: Features) -> csr_matrix:
    """Return checked features as CSR; what is CSR already stays the same object."""
    return X if isinstance(X, csr_matrix) else csr_matrix(X)


def check_describes(label_features: Features, n_labels: int) -> None:
    """Refuse features of labels that are not one row for each."""
    if label_features.shape[0] != n_labels:
        raise LabelsShapeError(
            f"label_features has {label_features.shape[0]:,} rows but Y has {n_labels:,} columns; "
            "each row of label_features describes the same column of Y"
        )


def unit_rows(X: Features) -> Features:
    """Return checked features with each row at length 1; a row of zeros stays.

    In float64, where no square overflows or vanishes.

    >>> unit_rows(np.array([[3, 4], [0, 0]], np.float32))
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    if not sparse.issparse(X):
        norms = np.sqrt(np.einsum("ij,ij->i", X, X, dtype=np.float64))
        return np.divide(X, _nonzero(norms)[:, None], dtype=np.float64).astype(np.float32)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    values = X.data.astype(np.float64)
    norms = np.sqrt(np.bincount(rows, weights=values**2, minlength=X.shape[0]))
    units = copy(X)  # shares the indices, which are not checked again
    units.data = (values / _nonzero(norms)[rows]).astype(np.float32)
    return units


def _sparse_features(X: Any, name: str) -> csr_matrix:
    if _is_ready(X):
        return X  # type: ignore[no-any-return]
    matrix = canonical_csr(X, as_float32, name, FeaturesError, may_be_long=True)
    _check_width(matrix.shape, name)
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        _refuse_values(matrix.data[bad], len(bad), row, name)
    return matrix


def _is_ready(X: Any) -> bool:
    """Whether nothing needs to be done; one pass, since rows asked one by one are common."""
    return (
        type(X) is csr_matrix
        and {type(X.data), type(X.indices), type(X.indptr)} <= _PLAIN_ARRAYS
        and X.data.ndim == X.indices.ndim == X.indptr.ndim == 1
        and X.data.dtype == np.float32
        and X.indices.dtype == X.indptr.dtype == index_dtype(len(X.indices), X.shape[0])
        and len(X.indptr) == X.shape[0] + 1
        and X.shape[1] > 0
        and is_clean(*frozen_csr(X), X.shape[1])
    )


def _dense_features(X: Any, name: str) -> npt.NDArray[np.float32]:
    array = as_array(X, name, FeaturesError)
    if array.ndim != 2:
        advice = (
            f"{name}.reshape(1, -1) for one sample"
            if array.ndim == 1
            else f"{name}.reshape(len({name}), -1)"
        )
        raise FeaturesError(
            f"{name} has shape {array.shape}; expected 2 dimensions, one row per sample. "
            f"Reshape your data: {advice}"
        )
    _check_width(array.shape, name)
    array = np.ascontiguousarray(as_float32(array))
    if not math.isfinite(array.sum(dtype=np.float64)):
        rows, columns = np.nonzero(~np.isfinite(array))
        if len(rows):
            _refuse_values(array[rows, columns], len(rows), int(rows[0]), name)
    return array


def _check_width(shape: tuple[int, ...], name: str) -> None:
    if shape[1] == 0:
        raise FeaturesError(
            f"{name} has no columns: Found array with 0 feature(s) (shape={shape}) while a minimum "
            "of 1 is required. Is the vocabulary of the vectorizer empty?"
        )


def _refuse_values(values: npt.NDArray[Any], count: int, row: int, name: str) -> None:
    what = "NaN" if np.isnan(values[0]) else "infinity (or a number too large for float32)"
    raise FeaturesError(
        f"{name} holds {what} in row {row} ({count:,} such values in all); "
        "replace or drop them, for example with sklearn.impute.SimpleImputer"
    )


def _nonzero(norms: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.where(norms > 0, norms, 1.0)
