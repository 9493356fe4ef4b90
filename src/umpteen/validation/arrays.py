"""What features and labels have in common: tables of numbers, dense or sparse."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix, csr_matrix

_MAX_INT32 = np.iinfo(np.int32).max


def canonical_csr(
    matrix: Any,
    convert: Callable[[npt.NDArray[Any]], npt.NDArray[np.float32]],
    name: str,
    error: type[ValueError],
) -> csr_matrix:
    """Return any sparse matrix as sorted, unique, 32-bit CSR of converted values.

    Values are converted before duplicates are added up: 256 ones of int8 would add up to 0.
    Shares memory where it can.
    """
    _check_number_type(matrix.dtype, name, error)
    if matrix.ndim != 2:
        raise error(f"{name} has shape {matrix.shape}; expected 2 dimensions, one row per sample")
    try:
        _check_size(matrix, name, error)
        fresh = _checked_structure(matrix)
    except error:
        raise
    except (ValueError, IndexError, TypeError, AttributeError) as problem:
        raise error(
            f"{name} is a damaged sparse matrix ({problem}); build it again, for example "
            "from (values, (rows, columns)) with scipy.sparse.coo_array"
        ) from None
    fresh.data = convert(fresh.data)
    return _sorted_unique(csr_matrix(fresh))


def _check_size(matrix: Any, name: str, error: type[ValueError]) -> None:
    """Refuse what 32 bits cannot count before anything looks at it, which would take minutes."""
    (n_rows, n_columns), n_values = matrix.shape, int(matrix.nnz)
    if max(n_values + n_rows, n_columns) > _MAX_INT32:
        raise error(
            f"{name} has {n_values:,} values in {n_rows:,} rows and {n_columns:,} columns; values "
            f"and rows together, and columns, may be at most {_MAX_INT32:,}. Use fewer samples, or "
            "fewer features, such as those of Vectorizer(min_df=3, min_df_ngrams=10)"
        )


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
    """The same entries in a new CSR, CSC or COO object, once its indices were found to be in range.

    New, because scipy's own check replaces the arrays of the object that it looks at.
    """
    if matrix.format in ("csr", "csc"):
        arrays = (matrix.data, matrix.indices, matrix.indptr)
        fresh = type(matrix)(arrays, shape=matrix.shape)
        fresh.check_format(full_check=True)
        return fresh
    entries = matrix.tocoo()
    return coo_matrix((entries.data, (entries.row, entries.col)), shape=matrix.shape)


def as_array(values: Any, name: str, error: type[ValueError]) -> npt.NDArray[Any]:
    """Return an array of numbers, or raise `error` about the input of that name."""
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as problem:
        raise error(f"{name} is not a table of numbers: {problem}") from None
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise error(
            f"{name} is a masked array with {np.ma.count_masked(values):,} missing values; replace "
            f"them, for example with {name}.filled(0), or leave out their rows"
        )
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


def as_float32(values: Any) -> npt.NDArray[np.float32]:
    """Return values as float32; what is too large becomes infinite."""
    with np.errstate(over="ignore"):  # infinity is refused later, by name
        return np.asarray(values, dtype=np.float32)
