"""Matrices that tasks read some rows of: whole on threads, in blocks of rows on a cluster.

`parallel.map(function, [OnRows(rows, item), ...], (Sharded(X, Y), ...))` calls `function` with such
an item and with matrices that have at least these rows. Where the rows are in them, `at` says.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

IntArray = npt.NDArray[np.int32]
Rows = IntArray | range
Matrix = csr_matrix | npt.NDArray[Any]


class OnRows(NamedTuple):
    """An item of `parallel.map` whose task reads these rows of what is `Sharded`, and no others."""

    rows: Rows
    item: Any = None


class Sharded:
    """Matrices with the same rows, each a CSR matrix or an array, of which tasks read some rows.

    >>> sharded = Sharded(csr_matrix(np.eye(4)), np.array([5, 6, 7, 8]))
    >>> (matrix, array), places = sharded.at(np.array([1, 3], np.int32))
    >>> array[places]
    array([6, 8])
    """

    def __init__(self, *matrices: Matrix) -> None:
        self.matrices = matrices

    def at(self, rows: Rows) -> tuple[tuple[Any, ...], Any]:
        """Return the matrices, and the places of some rows in them; other rows may be missing."""
        return self.matrices, rows

    def rows_at(self, places: IntArray) -> IntArray:
        """Return which rows are at some places: `at`, the other way round."""
        return places


class Part(Sharded):
    """Some rows of matrices, in ascending order, in place of all.

    >>> part = Part(np.array([1, 3], np.int32), np.array([6, 8]))
    >>> (array,), places = part.at(np.array([3], np.int32))
    >>> array[places], part.rows_at(places)
    (array([8]), array([3], dtype=int32))
    """

    def __init__(self, kept: IntArray, *matrices: Matrix) -> None:
        super().__init__(*matrices)
        self._kept = kept

    def at(self, rows: Rows) -> tuple[tuple[Any, ...], Any]:
        """Return the matrices, and the places of some rows in them."""
        if isinstance(rows, range):
            first = int(np.searchsorted(self._kept, rows.start))
            return self.matrices, range(first, first + len(rows))
        return self.matrices, np.searchsorted(self._kept, rows).astype(np.int32)

    def rows_at(self, places: IntArray) -> IntArray:
        """Return which rows are at some places."""
        return self._kept[places]


def rows_of(items: list[OnRows]) -> IntArray:
    """Return the rows that some tasks need, each once, in ascending order.

    >>> rows_of([OnRows(range(2, 4)), OnRows(np.array([3, 0], np.int32))])
    array([0, 2, 3], dtype=int32)
    """
    return np.unique(np.concatenate([np.asarray(each.rows, np.int32) for each in items]))
