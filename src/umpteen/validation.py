"""The only place that checks inputs.

People have CSR, CSC and COO matrices or arrays of any number type, numpy arrays, lists of label
ids. All of it becomes canonical 32-bit CSR (or a C-ordered float32 array) here, before a kernel
sees it; what was passed in is never modified.
"""

import math
from array import array as packed
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import coo_matrix, csr_matrix
from sklearn.utils._param_validation import (
    Interval,
    Options,
    StrOptions,
    validate_parameter_constraints,
)

from umpteen.errors import FeaturesError, LabelsError, LabelsShapeError, ParameterError
from umpteen.kernels.checks import is_clean
from umpteen.kernels.topk import frozen_csr

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

Features: TypeAlias = csr_matrix | npt.NDArray[np.float32]

# What parameters that many methods share may be, for their `_parameter_constraints`.
N_JOBS = [Interval(Integral, 1, None, closed="left"), Options(Integral, {-1}), None]
VERBOSE = ["boolean", StrOptions({"auto"})]

_MAX_INT32 = np.iinfo(np.int32).max


def check_parameters(estimator: "BaseEstimator") -> None:
    """Hold the constructor's arguments against the class's `_parameter_constraints`."""
    try:
        validate_parameter_constraints(
            estimator._parameter_constraints,
            estimator.get_params(deep=False),
            caller_name=type(estimator).__name__,
        )
    except ValueError as error:
        raise ParameterError(str(error)) from None


def check_label(label: Any, n_labels: int) -> int:
    """A label id as an int.

    >>> check_label(np.int32(2), n_labels=3)
    2
    """
    if isinstance(label, bool) or not isinstance(label, int | np.integer):
        raise LabelsError(f"label={label!r} is not a label id: expected a whole number from 0")
    if not 0 <= label < n_labels:
        raise LabelsError(f"label={label} does not exist: ids go from 0 to {n_labels - 1:,}")
    return int(label)


def check_k(k: Any, name: str = "k") -> int:
    """`k` as an int, at least 1.

    >>> check_k(np.int64(5))
    5
    """
    if isinstance(k, bool | np.bool_) or not isinstance(k, int | np.integer) or k < 1:
        raise ParameterError(f"{name}={k!r} is not possible: ask for {name}=1 or more")
    return int(k)


def check_features(
    X: Any, *, n_features: int | None = None, name: str = "X", model: str = "model"
) -> Features:
    """`X` as canonical CSR or C-ordered array of float32, with one row per sample.

    >>> check_features([[0, 1], [2, 3]])
    array([[0., 1.],
           [2., 3.]], dtype=float32)
    """
    features = _sparse_features(X, name) if sparse.issparse(X) else _dense_features(X, name)
    if n_features is not None and features.shape[1] != n_features:
        raise FeaturesError(
            f"{name} has {features.shape[1]:,} features, but {model} is expecting {n_features:,} "
            "features as input; use the same vectorizer (not fitted again) as in training"
        )
    return features


def as_csr(X: Features) -> csr_matrix:
    """Checked features as CSR; what is CSR already stays the same object."""
    return X if isinstance(X, csr_matrix) else csr_matrix(X)


def check_labels(
    Y: Any, *, n_samples: int | None = None, n_labels: int | None = None, name: str = "Y"
) -> csr_matrix:
    """`Y` as canonical CSR of float32 ones, `(n_samples, n_labels)`, non-zero = relevant.

    Lists of label-id lists and 1-D arrays of ids are indicators written shorter; `n_labels`
    (default: the largest id + 1) is their number of columns.

    >>> check_labels([[0, 2], [], [1]]).toarray()
    array([[1., 0., 1.],
           [0., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    if sparse.issparse(Y):
        labels = _sparse_labels(Y, name)
    elif _is_list_of_lists(Y):
        labels = _labels_of_lists(list(Y), n_labels, name)
    else:
        labels = _dense_labels(Y, n_labels, name)
    if n_samples is not None and labels.shape[0] != n_samples:
        raise LabelsShapeError(_row_mismatch(labels, n_samples, name))
    if n_labels is not None and labels.shape[1] != n_labels:
        raise LabelsShapeError(
            f"{name} has {labels.shape[1]:,} columns, but {n_labels:,} labels are known; "
            "each column is a label, in the same order as in training"
        )
    return labels


def is_single_label(Y: Any) -> bool:
    """Whether `Y` was given as one label id per sample, a 1-D array.

    >>> is_single_label([2, 0, 1]), is_single_label([[2], [0, 1]])
    (True, False)
    """
    return not sparse.issparse(Y) and not _is_list_of_lists(Y) and np.asarray(Y).ndim == 1


def _row_mismatch(labels: csr_matrix, n_samples: int, name: str) -> str:
    message = (
        f"X has {n_samples:,} rows but {name} has {labels.shape[0]:,}. "
        f"Each row of {name} holds the labels of the same row of X"
    )
    if labels.shape[1] == n_samples:
        return f"{message}; {name} looks transposed: pass {name}.T"
    if abs(labels.shape[0] - n_samples) == 1:
        return f"{message}; off by one: did you drop a header?"
    return message


def _sparse_features(X: Any, name: str) -> csr_matrix:
    if _is_ready(X):
        return X  # type: ignore[no-any-return]
    matrix = _canonical_csr(X, _as_float32, name, FeaturesError)
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
        and X.data.dtype == np.float32
        and X.indices.dtype == X.indptr.dtype == np.int32
        and len(X.indptr) == X.shape[0] + 1
        and X.shape[1] > 0
        and is_clean(*frozen_csr(X), X.shape[1])
    )


def _dense_features(X: Any, name: str) -> npt.NDArray[np.float32]:
    array = _as_array(X, name, FeaturesError)
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
    array = np.ascontiguousarray(_as_float32(array))
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


def _as_float32(values: Any) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):  # infinity is refused later, by name
        return np.asarray(values, dtype=np.float32)


def _sparse_labels(Y: Any, name: str) -> csr_matrix:
    def relevant(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        _check_relevance(values, name)
        return np.asarray(values != 0, dtype=np.float32)

    return _indicator(_canonical_csr(Y, relevant, name, LabelsError))


def _dense_labels(Y: Any, n_labels: int | None, name: str) -> csr_matrix:
    array = _as_array(Y, name, LabelsError)
    if array.ndim == 1:
        return _labels_of_ids(array, n_labels, name)
    if array.ndim != 2:
        raise LabelsShapeError(
            f"{name} has shape {array.shape}; expected 2 dimensions (samples x labels), "
            "a list of label-id lists, or one label id per sample"
        )
    _check_relevance(array, name)
    if array.shape[1] == 1 and array.size and array.max() > 1:
        raise LabelsError(
            f"{name} has one column with values up to {array.max()}: for one label id per sample "
            f"pass {name}.ravel(); for one label pass {name} > 0"
        )
    return _indicator(csr_matrix(array != 0))


def _labels_of_ids(ids: npt.NDArray[Any], n_labels: int | None, name: str) -> csr_matrix:
    if ids.dtype.kind == "f":
        if not np.isfinite(ids).all():
            raise LabelsError(f"{name} holds NaN or infinity; expected one label id per sample")
        if (ids != np.floor(ids)).any():
            raise LabelsError(
                f"{name} is 1-D with fractions (Unknown label type: continuous); "
                "expected one label id, a whole number, per sample"
            )
    n_columns = _n_columns(ids, n_labels, name)
    indptr = np.arange(len(ids) + 1, dtype=np.int32)
    ones = np.ones(len(ids), np.float32)
    return csr_matrix((ones, ids.astype(np.int32), indptr), shape=(len(ids), n_columns))


def _labels_of_lists(rows: Any, n_labels: int | None, name: str) -> csr_matrix:
    ids = packed("q")
    indptr = np.zeros(len(rows) + 1, np.int64)
    for i, row in enumerate(rows):
        _check_id_list(row, f"{name}[{i}]")
        try:
            ids.extend(row)
        except OverflowError:
            raise LabelsError(
                f"{name}[{i}] holds a label id beyond 64 bits; count from 0"
            ) from None
        indptr[i + 1] = len(ids)
    array = np.array(ids, np.int64)
    n_columns = _n_columns(array, n_labels, name)
    if n_labels is None:
        _check_not_an_indicator(array, np.diff(indptr), name)
    matrix = csr_matrix((np.ones(len(array)), array, indptr), shape=(len(rows), n_columns))
    return _indicator(_canonical_csr(matrix, _as_float32, name, LabelsError))


def _check_id_list(row: Any, name: str) -> None:
    if not _is_id_list(row):
        raise LabelsError(f"{name} is {row!r}; expected a list of label ids, as in the other rows")
    for value in row:
        if isinstance(value, str):
            raise LabelsError(
                f"{name} holds the text {value!r}; expected label ids (whole numbers). "
                "Tagger takes texts and label names"
            )
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise LabelsError(f"{name} holds {value!r}; expected label ids, whole numbers")


def _check_not_an_indicator(
    ids: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], name: str
) -> None:
    # Three or more ids that are all 0 or 1, in every row, repeat themselves: 0s and 1s are meant.
    if lengths.min() == lengths.max() > 2 and ids.max() <= 1:
        raise LabelsError(
            f"{name} is a list of lists of 0 and 1; lists are read as label ids: pass an "
            f"indicator as an array, np.array({name})"
        )


def _n_columns(ids: npt.NDArray[Any], n_labels: int | None, name: str) -> int:
    if len(ids) and ids.min() < 0:
        raise LabelsError(
            f"{name} holds the label id {int(ids.min())}; ids start at 0. "
            "A sample without labels has an empty list"
        )
    largest = int(ids.max()) if len(ids) else -1
    if n_labels is not None and largest >= n_labels:
        raise LabelsError(
            f"{name} holds the label id {largest:,}, but ids end at {n_labels - 1:,} "
            f"({n_labels:,} labels, numbered from 0)"
        )
    if largest >= _MAX_INT32:
        raise LabelsError(f"{name} holds the label id {largest:,}; ids must fit 32 bits")
    return n_labels if n_labels is not None else largest + 1


def _check_relevance(values: npt.NDArray[Any], name: str) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise LabelsError(f"{name} holds NaN or infinity; non-zero means relevant, zero means not")
    if values.size and values.dtype.kind in "if" and values.min() < 0:
        raise LabelsError(
            f"{name} holds negative values; non-zero means relevant, so use 0 (not -1) "
            f"for 'not relevant': {name} > 0"
        )


def _indicator(matrix: csr_matrix) -> csr_matrix:
    if matrix.data.size and not matrix.data.all():
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    ones = np.ones(len(matrix.indices), np.float32)
    return csr_matrix((ones, matrix.indices, matrix.indptr), shape=matrix.shape)


def _is_list_of_lists(Y: Any) -> bool:
    """Whether any row is a list of ids; also rows in an object array or a pandas Series."""
    if isinstance(Y, list | tuple) or (getattr(Y, "dtype", None) == np.object_ and Y.ndim == 1):
        return any(_is_id_list(row) for row in Y)
    return False


def _is_id_list(row: Any) -> bool:
    return isinstance(row, list | tuple | set | frozenset) or (
        isinstance(row, np.ndarray) and row.ndim == 1
    )


def _as_array(values: Any, name: str, error: type[ValueError]) -> npt.NDArray[Any]:
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as problem:
        raise error(f"{name} is not a table of numbers: {problem}") from None
    _check_number_type(array.dtype, name, error)
    return array


def _check_number_type(dtype: np.dtype[Any], name: str, error: type[ValueError]) -> None:
    if dtype.kind in "biuf":
        return
    if dtype.kind == "c":
        raise error(f"Complex data not supported: {name} has dtype {dtype}; use real numbers")
    kind = "texts" if dtype.kind in "US" else f"objects (dtype {dtype})"
    raise error(
        f"{name} holds {kind}; expected numbers. Tagger takes texts and label names; "
        "an object array of numbers needs .astype(float)"
    )


def _canonical_csr(
    matrix: Any,
    convert: Callable[[npt.NDArray[Any]], npt.NDArray[np.float32]],
    name: str,
    error: type[ValueError],
) -> csr_matrix:
    """Any sparse matrix as sorted, unique, 32-bit CSR of converted values.

    Values are converted before duplicates are added up: 256 ones of int8 would add up to 0.
    Shares memory where it can.
    """
    _check_number_type(matrix.dtype, name, error)
    if matrix.ndim != 2:
        raise error(f"{name} has shape {matrix.shape}; expected 2 dimensions, one row per sample")
    try:
        fresh = _checked_structure(matrix)
    except (ValueError, IndexError) as problem:
        raise error(
            f"{name} is a damaged sparse matrix ({problem}); build it again, for example "
            "from (values, (rows, columns)) with scipy.sparse.coo_array"
        ) from None
    if max(fresh.nnz, *fresh.shape) > _MAX_INT32:
        raise error(f"{name} has more than 2^31 entries, rows or columns; split it into parts")
    fresh.data = convert(fresh.data)
    return _sorted_unique(csr_matrix(fresh))


def _sorted_unique(matrix: csr_matrix) -> csr_matrix:
    indices = matrix.indices.astype(np.int32, copy=False)
    indptr = matrix.indptr.astype(np.int32, copy=False)
    # Anew, so that scipy looks at the order itself, not at an old flag.
    fresh = csr_matrix((matrix.data, indices, indptr), shape=matrix.shape)
    if not fresh.has_canonical_format:
        fresh = fresh.copy()
        fresh.sum_duplicates()
    return fresh


def _checked_structure(matrix: Any) -> Any:
    """The same entries in a new CSR, CSC or COO object, once its indices are known to be in range.

    New, because scipy's own check replaces the arrays of the object that it looks at.
    """
    if matrix.format in ("csr", "csc"):
        parts = (matrix.data, matrix.indices, matrix.indptr)
        fresh = type(matrix)(parts, shape=matrix.shape)
        fresh.check_format(full_check=True)
        return fresh
    entries = matrix.tocoo()
    return coo_matrix((entries.data, (entries.row, entries.col)), shape=matrix.shape)
