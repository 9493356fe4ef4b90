"""Columns and tables of pandas, polars, Arrow and whatever else speaks their protocols.

None of these libraries is imported here: a column is told by what it can do, so that the ones
that a person has work, and nobody needs one.
"""

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from umpteen.extras import require

_AS_LIST = ("to_pylist", "to_list", "tolist")  # of Arrow; of pandas and polars; of pandas' arrays
_ARROW = "__arrow_c_stream__"


def is_missing(value: Any) -> bool:
    """Return whether a cell holds nothing: None, NaN, or what pandas has for it.

    >>> is_missing(None), is_missing(float("nan")), is_missing(0), is_missing("")
    (True, True, False, False)
    """
    if value is None:
        return True
    if isinstance(value, str | bytes | list | tuple | set | frozenset | np.ndarray):
        return False
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except (TypeError, ValueError):  # pandas' NA does not say; a list of something has several
        return type(value).__name__ == "NAType"


def is_table(values: Any) -> bool:
    """Return whether `values` is a data frame or a table: columns with names.

    >>> is_table([1, 2]), is_table(np.zeros((2, 2)))
    (False, False)
    """
    return hasattr(type(values), "columns") and not isinstance(values, np.ndarray)


def cells(values: Any, name: str, error: type[ValueError]) -> Any:
    """Return the cells of a column as a list; what is no column stays the same object.

    >>> cells(np.array(["a", "b"]), "texts", ValueError)
    ['a', 'b']
    """
    if isinstance(values, list | tuple):
        return values
    values = _collected(values, name, error)
    if is_table(values):
        names = _column_names(values)
        shown = ", ".join(f"{column!r:.40}" for column in names[:8]) or "none"
        example = f"table[{names[0]!r:.40}]" if names else "table['text']"
        raise error(
            f"{name} is a table with the columns {shown}; expected one column, such as {example}"
        )
    for method in _AS_LIST:
        if hasattr(values, method):
            return getattr(values, method)()
    return values


def plain(values: Any, name: str, error: type[ValueError]) -> Any:
    """Return a table or a column of numbers as an array or a sparse matrix, one of lists as lists.

    What is neither stays the same object. The columns of a table become the columns of the
    matrix. A missing number becomes NaN, which is refused later, with its row.
    """
    if isinstance(values, list | tuple | np.ndarray) or issparse(values):
        return values
    values = _collected(values, name, error)
    if is_table(values):
        return _matrix(values, name, error)
    if not any(hasattr(values, method) for method in _AS_LIST):
        return values
    try:
        array = np.asarray(values)
    except (RuntimeError, TypeError) as problem:  # a sparse tensor, or one with gradients
        raise error(f"{name} cannot be read as an array: {problem}") from None
    if array.dtype.kind in "biuf":
        return array
    found = cells(values, name, error)
    return _numbers(found) if all(map(_is_number, found)) else found


def _collected(values: Any, name: str, error: type[ValueError]) -> Any:
    """An Arrow stream of any library becomes Arrow's own column or table."""
    if hasattr(type(values), "collect") and not hasattr(type(values), "shape"):
        raise error(f"{name} is lazy and was not computed yet: pass {name}.collect()")
    is_ready = is_table(values) or any(hasattr(values, method) for method in _AS_LIST)
    if is_ready or not hasattr(values, _ARROW):
        return values
    arrow = require("pyarrow", "parquet")
    stream = arrow.chunked_array(values)
    return arrow.table(stream) if arrow.types.is_struct(stream.type) else stream


def _column_names(table: Any) -> list[Any]:
    return list(getattr(table, "column_names", table.columns))


def _columns(table: Any) -> Iterator[tuple[Any, Any]]:
    names = _column_names(table)
    for place, name in enumerate(names):
        # By their places: names of pandas may come twice.
        yield name, table.iloc[:, place] if hasattr(table, "iloc") else table[name]


def _matrix(table: Any, name: str, error: type[ValueError]) -> Any:
    stored_sparsely = getattr(table, "sparse", None)  # pandas has it if all columns are sparse
    if stored_sparsely is not None and hasattr(stored_sparsely, "to_coo"):
        try:
            return stored_sparsely.to_coo()
        except ValueError:  # what is not stored is not zero: then it is not sparse for us
            pass
    columns = [_column(one, column, name, error) for one, column in _columns(table)]
    return np.column_stack(columns) if columns else np.empty((len(table), 0), np.float32)


def _column(column_name: Any, column: Any, name: str, error: type[ValueError]) -> Any:
    array = np.asarray(column)
    if array.dtype.kind in "biuf":
        return array
    found = cells(column, name, error)
    for row, value in enumerate(found):
        if not _is_number(value):
            raise error(
                f"the column {column_name!r:.40} of {name} holds {value!r:.40} in row {row}; "
                "expected numbers: leave it out, or encode it, for example with "
                "sklearn.preprocessing.OneHotEncoder. Tagger takes a column of texts"
            )
    return _numbers(found)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | np.bool_) or is_missing(value)


def _numbers(values: list[Any]) -> npt.NDArray[Any]:
    if any(map(is_missing, values)):
        return np.array([np.nan if is_missing(value) else float(value) for value in values])
    return np.array(values)
