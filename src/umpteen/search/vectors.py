"""What an index is given: checked, and vectors brought to unit length block by block."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from umpteen.errors import FeaturesError, LabelsError, ParameterError
from umpteen.validation import check_features, unit_rows

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
Option = TypeVar("Option", bound=str)

_BLOCK_ROWS = 4096  # computed in float64


def unit_vectors(table: Any, name: str, *, dim: int | None = None) -> FloatArray:
    """Return a new table with the same rows at length 1; a row of zeros stays.

    >>> unit_vectors([[3, 4], [0, 0]], "vectors")
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    if sparse.issparse(table):
        raise FeaturesError(
            f"{name} are a sparse matrix; expected a dense array with one "
            "vector per row. For sparse features, use NearestCentroid or LabelTree"
        )
    checked = np.asarray(check_features(table, name=name))
    if dim is not None and checked.shape[1] != dim:
        raise FeaturesError(
            f"{name} have {checked.shape[1]:,} columns, but the vectors of this index have "
            f"{dim:,}; take both from the same encoder"
        )
    units = np.empty_like(checked)
    for first in range(0, len(checked), _BLOCK_ROWS):
        units[first : first + _BLOCK_ROWS] = unit_rows(checked[first : first + _BLOCK_ROWS])
    return units


def check_some(vectors: FloatArray) -> FloatArray:
    """Return the same, if there is at least one."""
    if not len(vectors):
        raise FeaturesError(
            f"vectors have no rows (shape {vectors.shape}); expected one per label, at least one"
        )
    return vectors


def has_direction(vectors: FloatArray) -> BoolArray:
    """Return which rows are not all zero."""
    return np.asarray(vectors.any(axis=1))


def check_ids(ids: Any, n_labels: int) -> IntArray:
    """Return label ids as a 1-D array, each from 0 to `n_labels` - 1.

    >>> check_ids([2, 0], 3)
    array([2, 0], dtype=int32)
    """
    array = np.atleast_1d(np.asarray(ids))
    if not array.size:
        return np.zeros(0, np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise LabelsError(
            f"ids of shape {array.shape} and dtype {array.dtype} are not label ids; expected one "
            "list of whole numbers"
        )
    if array.min() < 0 or array.max() >= n_labels:
        wrong = array.min() if array.min() < 0 else array.max()
        raise LabelsError(f"there is no label {wrong:,}: ids go from 0 to {n_labels - 1:,}")
    return array.astype(np.int32)


def check_option(value: Option, name: str, options: tuple[str, ...]) -> Option:
    """Return the same, if it is one of the options."""
    if not isinstance(value, str) or value not in options:
        raise ParameterError(f"{name}={value!r} is not possible: choose from {options}")
    return value
