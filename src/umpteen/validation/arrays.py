"""What features and labels have in common: tables of numbers, dense or sparse."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix, csr_matrix

_MAX_INT32 = np.iinfo(np.int32).max
_MOST_SHORT = _MAX_INT32  # values and rows together of a matrix whose indices have 32 bits
# What scipy raises where the arrays of a sparse matrix do not belong together.
_DAMAGE = (
    ValueError, IndexError, TypeError, AttributeError, ArithmeticError, RuntimeError,
    np.ma.MaskError,
)  # fmt: skip
_NUMBERS = "Tagger takes texts and label names; an object array of numbers needs .astype(float)"


def index_dtype(n_values: int, n_rows: int) -> type[np.int32] | type[np.int64]:
    """Return the type of indices that a checked matrix of so many values and rows has.

    >>> index_dtype(2**31, 10)
    <class 'numpy.int64'>
    """
    return np.int64 if n_values + n_rows > _MOST_SHORT else np.int32


def canonical_csr(
    matrix: Any,
    convert: Callable[[npt.NDArray[Any]], npt.NDArray[np.float32]],
    name: str,
    error: type[ValueError],
    *,
    may_be_long: bool = False,
) -> csr_matrix:
    """Return any sparse matrix as sorted, unique CSR of converted values.

    Values are converted before duplicates are added up: 256 ones of int8 would add up to 0.
    Indices have 32 bits; a matrix that `may_be_long` has 64 if it has too many values for 32.
    Shares memory where it can.
    """
    try:
        _check_number_type(matrix.dtype, name, error)
        if matrix.ndim != 2:
            raise error(
                f"{name} has shape {matrix.shape}; expected 2 dimensions, one row per sample"
            )
        _check_parts(matrix)
        _check_size(matrix, name, error, may_be_long)
        fresh = _checked_structure(matrix)
    except error:
        raise
    except _DAMAGE as problem:
        raise error(
            f"{name} is a damaged sparse matrix ({problem}); build it again, for example "
            "from (values, (rows, columns)) with scipy.sparse.coo_array"
        ) from None
    fresh.data = convert(fresh.data)
    return _sorted_unique(csr_matrix(fresh))


def _check_size(matrix: Any, name: str, error: type[ValueError], may_be_long: bool) -> None:
    """Refuse what 32 bits cannot count before anything looks at it, which would take minutes."""
    (n_rows, n_columns), n_values = matrix.shape, int(matrix.nnz)
    counted = n_rows if may_be_long else n_values + n_rows
    if max(counted, n_columns) > _MAX_INT32:
        what = "rows" if may_be_long else "values and rows together"
        raise error(
            f"{name} has {n_values:,} values in {n_rows:,} rows and {n_columns:,} columns; {what}, "
            f"and columns, may be at most {_MAX_INT32:,}. Use fewer samples, or fewer features, "
            "such as those of Vectorizer(min_df=3, min_df_ngrams=10)"
        )


def _sorted_unique(matrix: csr_matrix) -> csr_matrix:
    # Anew, so that scipy looks at the order itself, not at an old flag.
    fresh = _with_indices(matrix, index_dtype(matrix.nnz, matrix.shape[0]))
    if not fresh.has_canonical_format:
        fresh = fresh.copy()
        fresh.sum_duplicates()
        fresh = _with_indices(fresh, index_dtype(fresh.nnz, fresh.shape[0]))
    return fresh


def _with_indices(matrix: csr_matrix, dtype: type[np.integer]) -> csr_matrix:
    """Return the matrix with this type of indices; scipy would choose a type itself."""
    fresh = csr_matrix(matrix.shape, dtype=matrix.dtype)
    fresh.data = matrix.data
    fresh.indices = matrix.indices.astype(dtype, copy=False)
    fresh.indptr = matrix.indptr.astype(dtype, copy=False)
    return fresh


def _check_parts(matrix: Any) -> None:
    """Refuse arrays of other lengths than one another, which scipy would read beyond their ends."""
    if matrix.format == "dia" and (
        matrix.data.ndim != 2 or matrix.offsets.shape != matrix.data.shape[:1]
    ):
        raise ValueError("each diagonal needs an offset")
    if matrix.format == "bsr" and any(
        each % size for each, size in zip(matrix.shape, matrix.data.shape[1:], strict=True)
    ):
        raise ValueError("its shape must be a multiple of its block size")
    if matrix.format == "lil" and not (
        matrix.rows.shape == matrix.data.shape == matrix.shape[:1]
        and all(map(_are_equally_long, matrix.rows, matrix.data))
    ):
        raise ValueError("each row needs as many columns as values")


def _are_equally_long(columns: Any, values: Any) -> bool:
    return isinstance(columns, list) and isinstance(values, list) and len(columns) == len(values)


def _checked_structure(matrix: Any) -> Any:
    """Return the same entries in a new CSR, CSC, BSR or COO object, once its indices are in range.

    New, because scipy's own check replaces the arrays of the object that it looks at.
    """
    if matrix.format in ("csr", "csc", "bsr"):
        arrays = (matrix.data, matrix.indices, matrix.indptr)
        fresh = type(matrix)(arrays, shape=matrix.shape)
        fresh.check_format(full_check=True)
        if (fresh.indptr[1:] < fresh.indptr[:-1]).any():  # scipy's differences may overflow
            raise ValueError("index pointer values must not decrease")
        return fresh
    entries = matrix.tocoo()
    return coo_matrix((entries.data, (entries.row, entries.col)), shape=matrix.shape)


def as_array(
    values: Any, name: str, error: type[ValueError], advice: str = _NUMBERS
) -> npt.NDArray[Any]:
    """Return an array of numbers, or raise `error` about the input of that name.

    `advice` is for values that are not numbers.
    """
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as problem:
        raise error(f"{name} is not a table of numbers: {problem}") from None
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise error(
            f"{name} is a masked array with {np.ma.count_masked(values):,} missing values; replace "
            f"them, for example with {name}.filled(0), or leave out their rows"
        )
    _check_number_type(array.dtype, name, error, advice)
    return array


def _check_number_type(
    dtype: np.dtype[Any], name: str, error: type[ValueError], advice: str = _NUMBERS
) -> None:
    if dtype.kind in "biuf":
        return
    if dtype.kind == "c":
        raise error(f"Complex data not supported: {name} has dtype {dtype}; use real numbers")
    kind = "texts" if dtype.kind in "US" else f"objects (dtype {dtype})"
    raise error(f"{name} holds {kind}; expected numbers. {advice}")


def as_float32(values: Any) -> npt.NDArray[np.float32]:
    """Return values as float32; what is too large becomes infinite."""
    with np.errstate(over="ignore"):  # infinity is refused later, by name
        return np.asarray(values, dtype=np.float32)
