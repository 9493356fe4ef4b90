"""Labels: `Y` in the forms that people have, and single label ids."""

from array import array as packed
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen.errors import LabelsError, LabelsShapeError
from umpteen.validation.arrays import as_array, as_float32, canonical_csr
from umpteen.validation.columns import plain
from umpteen.validation.indicators import indicator_doubt, say_doubt

_MAX_INT32 = np.iinfo(np.int32).max
_NAMES = (
    "Tagger takes texts and label names; for names with features, scikit-learn's LabelEncoder "
    "numbers one class per sample, and MultiLabelBinarizer numbers lists"
)
_ANY_ID, _IDS_PER_ENTRY = 10_000_000, 10  # ids beyond both are no numbers from 0 on


def check_labels(
    Y: Any,
    *,
    n_samples: int | None = None,
    n_labels: int | None = None,
    n_features: int | None = None,
    name: str = "Y",
) -> csr_matrix:
    """Return `Y` as canonical CSR of float32 ones `(n_samples, n_labels)`, non-zero = relevant.

    Lists of label-id lists and 1-D arrays of ids are indicators written shorter; `n_labels`
    (default: the largest id + 1) is their number of columns. An error uses `n_features` of `X`.

    >>> check_labels([[0, 2], [], [1]]).toarray()
    array([[1., 0., 1.],
           [0., 0., 0.],
           [0., 1., 0.]], dtype=float32)
    """
    Y = plain(Y, name, LabelsError)
    if sparse.issparse(Y):
        labels = _sparse_labels(Y, name)
    elif is_list_of_lists(Y):
        labels = _labels_of_lists(list(Y), n_labels, name)
    else:
        labels = _dense_labels(Y, n_labels, name)
    if n_samples is not None and labels.shape[0] != n_samples:
        raise LabelsShapeError(_row_mismatch(labels, n_samples, n_features, name))
    if n_labels is not None and labels.shape[1] != n_labels:
        raise LabelsShapeError(
            f"{name} has {labels.shape[1]:,} columns, but there are {n_labels:,} labels; "
            "each column is a label, in the same order as in training"
        )
    return labels


def check_label(label: Any, n_labels: int) -> int:
    """Return a label id as an int.

    >>> check_label(np.int32(2), n_labels=3)
    2
    """
    if isinstance(label, bool) or not isinstance(label, int | np.integer):
        raise LabelsError(f"label={label!r} is not a label id: expected a whole number from 0")
    if not 0 <= label < n_labels:
        raise LabelsError(f"label={label} does not exist: ids go from 0 to {n_labels - 1:,}")
    return int(label)


def check_asked_labels(labels: Any, n_samples: int, n_labels: int) -> npt.NDArray[np.int32]:
    """Return the labels that a caller asks about for each sample, as ids `(n, m)`.

    >>> check_asked_labels([1, 0], 2, 3)
    array([[1],
           [0]], dtype=int32)
    """
    if labels is None:
        raise LabelsError(
            f"which of the {n_labels:,} labels? Pass labels=, one id per row or m of them; "
            "predict_topk gives the most probable ones"
        )
    ids = np.asarray(labels)
    if ids.ndim not in (1, 2) or len(ids) != n_samples:
        raise LabelsShapeError(
            f"labels have shape {ids.shape}; expected ({n_samples:,},), one label id for each "
            f"row of X, or ({n_samples:,}, m)"
        )
    flat = check_labels(ids.ravel(), n_labels=n_labels, name="labels").indices
    return flat.astype(np.int32).reshape(ids.shape if ids.ndim == 2 else (-1, 1))


def is_single_label(Y: Any) -> bool:
    """Return whether `Y` was given as one label id per sample, a 1-D array.

    >>> is_single_label([2, 0, 1]), is_single_label([[2], [0, 1]])
    (True, False)
    """
    Y = plain(Y, "Y", LabelsError)
    return not sparse.issparse(Y) and not is_list_of_lists(Y) and np.asarray(Y).ndim == 1


def is_gappy(largest: int, n_ids: int) -> bool:
    """Return whether ids are rather keys of a database than numbers from 0 on.

    >>> is_gappy(70_000, 3), is_gappy(2_000_000_000, 3)
    (False, True)
    """
    return largest >= _ANY_ID + _IDS_PER_ENTRY * n_ids


def is_list_of_lists(Y: Any) -> bool:
    """Return whether any row is a list of ids; also in an object array or a pandas Series."""
    if isinstance(Y, list | tuple) or (getattr(Y, "dtype", None) == np.object_ and Y.ndim == 1):
        return any(_is_id_list(row) for row in Y)
    return False


def _row_mismatch(labels: csr_matrix, n_samples: int, n_features: int | None, name: str) -> str:
    message = (
        f"X has {n_samples:,} rows but {name} has {labels.shape[0]:,}. "
        f"Each row of {name} holds the labels of the same row of X"
    )
    if labels.shape[1] == n_samples:
        return f"{message}; {name} looks transposed: pass {name}.T"
    if labels.shape[0] == n_features:
        return f"{message}; X looks transposed: pass X.T"
    if abs(labels.shape[0] - n_samples) == 1:
        return f"{message}; off by one: did you drop a header?"
    return message


def _sparse_labels(Y: Any, name: str) -> csr_matrix:
    def relevant(values: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        _check_relevance(values, name)
        return np.asarray(values != 0, dtype=np.float32)

    return _indicator(canonical_csr(Y, relevant, name, LabelsError))


def _dense_labels(Y: Any, n_labels: int | None, name: str) -> csr_matrix:
    array = as_array(
        Y, name, LabelsError, f"{_NAMES}; an object array of numbers needs .astype(int)"
    )
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
            row = int(np.flatnonzero(~np.isfinite(ids))[0])
            raise LabelsError(
                f"{name} holds NaN or infinity in row {row}; expected one label id per sample"
            )
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
    return _indicator(list_counts(rows, n_labels, name, repeats=False))


def list_counts(rows: Any, n_labels: int | None, name: str, *, repeats: bool) -> csr_matrix:
    """Count how often each id is in each list, as canonical CSR `(lists, n_labels)`.

    `repeats` says that an id may be in a list several times.
    """
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
    if doubt := indicator_doubt(array, np.diff(indptr), n_labels):
        sure = doubt == "repeated" and not (repeats and len(rows[0]) == 2)
        say_doubt(sure, name, "sample numbers" if name == "groups" else "label ids")
    matrix = csr_matrix((np.ones(len(array)), array, indptr), shape=(len(rows), n_columns))
    return canonical_csr(matrix, as_float32, name, LabelsError)


def _check_id_list(row: Any, name: str) -> None:
    if not _is_id_list(row):
        raise LabelsError(f"{name} is {row!r}; expected a list of label ids, as in the other rows")
    for value in row:
        if isinstance(value, str):
            raise LabelsError(
                f"{name} holds the text {value!r}; expected label ids (whole numbers). {_NAMES}"
            )
        if isinstance(value, bool) or not isinstance(value, int | np.integer):
            raise LabelsError(f"{name} holds {value!r}; expected label ids, whole numbers")


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
    if n_labels is None and is_gappy(largest, len(ids)):
        raise LabelsError(
            f"{name} holds the label id {largest:,}, but only {len(ids):,} ids in all; every id "
            "from 0 on would be a label. Number yours by np.unique(ids, return_inverse=True)[1], "
            "or pass a sparse matrix"
        )
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


def _is_id_list(row: Any) -> bool:
    return isinstance(row, list | tuple | set | frozenset | range) or (
        isinstance(row, np.ndarray) and row.ndim == 1
    )
