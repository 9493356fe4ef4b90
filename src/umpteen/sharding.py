"""Matrices that tasks read some rows of: whole on threads, in blocks of rows on a cluster.

`parallel.map(function, [OnRows(rows, item), ...], (Sharded(X, Y), ...))` calls `function` with such
an item and with matrices that have at least these rows. Where the rows are in them, `at` says.
`over_blocks` makes such items of all rows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import parallel

Result = TypeVar("Result")
IntArray = npt.NDArray[np.int32]
Rows = IntArray | range
Matrix = csr_matrix | npt.NDArray[Any]

_FEW_VALUES = 4_000_000  # a step that reads them takes less than a second: not worth sending
# From so many rows on, a model is worth sending: scoring a row takes about a five-hundredth of the
# time that it takes to send the vectors of labels, however many these are.
_WORTH_SENDING = 4096


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


def stays_here(n_values: int, n_tasks: int, n_jobs: int | None) -> bool:
    """Return whether tasks on rows with so many values should run in this process.

    The rows would have to be sent, which is worth it only if more cores then work on them.

    >>> stays_here(10**9, n_tasks=100, n_jobs=2)
    True
    """
    at_once = min(n_tasks, parallel.width(n_jobs))
    return n_values < _FEW_VALUES or at_once <= parallel.n_threads(n_jobs)


def over_blocks(
    function: Callable[..., Result],
    n_rows: int,
    size: int,
    shared: tuple[Any, ...],
    *,
    n_jobs: int | None,
    done: Callable[[OnRows], object] | None = None,
) -> list[Result]:
    """Return the results of `function(OnRows(range), *shared)` for blocks of `size` rows, in order.

    A single block may use all threads, and each of several uses one. Few rows stay in this process.

    >>> over_blocks(lambda task: list(task.rows), 5, 2, (), n_jobs=2)
    [[0, 1], [2, 3], [4]]
    """
    tasks = [OnRows(range(first, min(first + size, n_rows))) for first in range(0, n_rows, size)]
    alone = (None if len(tasks) == 1 else 1, function, *shared)
    if n_rows < _WORTH_SENDING:
        return parallel.run(
            lambda task: _with_threads(task, *alone), tasks, n_jobs=n_jobs, done=done
        )
    return parallel.map(_with_threads, tasks, alone, n_jobs=n_jobs, done=done)


def _with_threads(
    task: OnRows, most: int | None, function: Callable[..., Result], *shared: Any
) -> Result:
    if most is None:
        return function(task, *shared)
    with parallel.at_most(most):
        return function(task, *shared)
