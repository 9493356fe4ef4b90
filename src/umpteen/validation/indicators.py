"""Lists of 0 and 1: label ids, or the rows of a matrix?"""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from umpteen.errors import LabelsError, warn_caller

_NUMBERS = {0: 0, 1: 1, "0": 0, "1": 1}


def indicator_doubt(
    ids: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], width: int | None = None
) -> str | None:
    """Return why lists of ids look like the rows of an indicator matrix, or None.

    That needs lists of one length, two or more (and `width`, if that is known), of nothing but 0
    and 1. "repeated" means that an id is twice in a list, as always from three on: as ids, such
    lists make no sense. "unordered" means that ids make sense, but some list is [1, 0].

    >>> indicator_doubt(np.array([1, 0, 0, 1, 1, 1]), np.array([2, 2, 2]))
    'repeated'
    >>> indicator_doubt(np.array([0, 1, 0, 1]), np.array([2, 2]))
    """
    if len(ids) == 0 or lengths.min() != lengths.max() or ids.min() < 0 or ids.max() > 1:
        return None
    length = int(lengths[0])
    if length < 2 or width not in (None, length):
        return None
    rows = ids.reshape(-1, length)
    if length > 2 or (rows[:, 0] == rows[:, 1]).any():
        return "repeated"
    return "unordered" if (rows[:, 0] > rows[:, 1]).any() else None


def doubt_of_names(lists: Iterable[Any]) -> str | None:
    """Return the same for lists of label names, of which "0" and "1" are two.

    >>> doubt_of_names([[1, 0, 0], [0, 1, 1]]), doubt_of_names([["a", "b"], ["b"]])
    ('repeated', None)
    """
    rows = list(lists)
    if not all(isinstance(row, list | tuple | np.ndarray) for row in rows):
        return None
    values: list[int] = []
    for value in chain.from_iterable(rows):
        number = _NUMBERS.get(value) if isinstance(value, str | int | np.integer) else None
        if number is None:
            return None
        values.append(number)
    return indicator_doubt(np.array(values, np.int64), np.array([len(row) for row in rows]))


def say_doubt(sure: bool, name: str, read_as: str) -> None:
    """Refuse lists that are surely rows of a matrix, and warn of those that may be."""
    advice = f"pass an indicator as an array, np.array({name})"
    if sure:
        raise LabelsError(
            f"{name} is a list of lists of 0 and 1; lists are read as {read_as}: {advice}"
        )
    warn_caller(
        f"{name} is a list of pairs of 0 and 1, which are read as {read_as}: [1, 0] is the same as "
        f"[0, 1], and [1, 1] is 1 twice. If they are rows of a matrix, {advice}"
    )
