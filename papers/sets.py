"""Data sets as several pages need them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import data
from umpteen.errors import DataFormatError

IntArray = npt.NDArray[np.int64]


def available(names: Sequence[str]) -> list[str]:
    """Those that can be loaded."""
    there = data.names()
    return [name for name in names if name in there]


def train_and_test(name: str) -> tuple[Any, Any]:
    """Both splits of a data set, which must be there."""
    found = data.load(name)
    if found.test is None:
        raise DataFormatError(f"{name} has no part to test on: add it")
    return found.train, found.test


def texts_of(part: Any) -> list[str]:
    """The texts of a part, which must be there."""
    if part.texts is None:
        raise DataFormatError("the data set has features only, but no texts: add them")
    texts: list[str] = part.texts
    return texts


def some_rows(n: int, most: int | None) -> IntArray:
    """Of many, some at random; their order stays."""
    if most is None or most >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).permutation(n)[:most])


def rarest_label(Y: csr_matrix, counts: npt.NDArray[np.integer], least: int = 3) -> IntArray:
    """Of each row, the label with the lowest count of `least` or more, or -1; of equals the first.

    >>> Y = csr_matrix([[1, 1, 1], [1, 0, 0], [0, 1, 1]])
    >>> rarest_label(Y, np.array([9, 2, 3]))
    array([2, 0, 2])
    """
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    enough = counts[Y.indices] >= least
    rows, labels = rows[enough], Y.indices[enough].astype(np.int64)
    order = np.lexsort((labels, counts[labels], rows))
    labelled, first = np.unique(rows[order], return_index=True)
    chosen = np.full(Y.shape[0], -1, np.int64)
    chosen[labelled] = labels[order][first]
    return chosen
