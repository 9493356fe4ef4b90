"""Declare what the fields of storable classes may hold, with their types, with `Annotated`.

Types say what a field is, and these say what is in it:

    first: Annotated[NDArray[np.int32], Shape("rows + 1"), Offsets("entries")]
    label: Annotated[NDArray[np.int32], Shape("entries"), Index("labels")]

A size has a name, which means the same number in all fields of an object; `Given` passes sizes on
to a nested object. `load` checks all declarations before the object is used: an untrusted model may
hold anything, and compiled code does not check its indices.

Arrays are checked in blocks that fit into the processor's cache: a tenth of a second per gigabyte.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Sizes: TypeAlias = dict[str, int]
Length: TypeAlias = int | str  # a number, a name, or a name and one more: "rows + 1"

_BLOCK = 1 << 17
_ONE_MORE = " + 1"


@dataclass(frozen=True, init=False)
class Shape:
    """The lengths of an array, of a sparse matrix, or of a list."""

    lengths: tuple[Length, ...]

    def __init__(self, *lengths: Length) -> None:
        object.__setattr__(self, "lengths", lengths)

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Return an error message or None; sizes that are not set yet are set."""
        shape = tuple(value.shape) if hasattr(value, "shape") else (len(value),)
        fits = len(shape) == len(self.lengths) and all(
            _fits(expected, found, sizes)
            for expected, found in zip(self.lengths, shape, strict=True)
        )
        if fits:
            return None
        sizes_so_far = {name: sizes[name] for name in map(_name, self.lengths) if name in sizes}
        return (
            f"has shape {shape}, expected ({', '.join(map(str, self.lengths))}) with {sizes_so_far}"
        )


@dataclass(frozen=True)
class Size:
    """A whole number, 0 or more, that is itself a size with a name."""

    name: str

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Return an error message or None; sizes that are not set yet are set."""
        if value < 0 or not _fits(self.name, int(value), sizes):
            return f"is {value}, expected {sizes.get(self.name, '0 or more')}"
        return None


@dataclass(frozen=True, init=False)
class Given:
    """Sizes of this object that an object inside knows by the same names."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


@dataclass(frozen=True)
class Within:
    """Numbers from `low` to below `high`, in an array, in a sparse matrix, or a single one."""

    low: float
    high: float | str

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Return an error message or None."""
        high = sizes[self.high] if isinstance(self.high, str) else self.high
        values = np.asarray(getattr(value, "data", value) if hasattr(value, "indptr") else value)
        if all(_all_within(part, self.low, high) for part in _blocks(values)):
            return None
        return f"holds numbers outside the range {self.low} <= number < {high}"


def Index(size: str) -> Within:  # noqa: N802
    """Return a declaration of numbers that point into something of that size."""
    return Within(0, size)


@dataclass(frozen=True)
class Offsets:
    """Where consecutive slices of something begin and the last ends: rising from 0 to its size."""

    into: str

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Return an error message or None; sizes that are not set yet are set."""
        if len(value) == 0 or value[0] != 0 or not is_rising(value):
            return "is not a list of offsets that starts at 0 and never decreases"
        if not _fits(self.into, int(value[-1]), sizes):
            return f"ends at {int(value[-1])}, expected {sizes[self.into]}"
        return None


@dataclass(frozen=True)
class NotEmpty:
    """A list or array with at least one entry."""

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Return an error message or None."""
        return None if len(value) else "is empty"


@dataclass(frozen=True, init=False)
class OneOf:
    """One of the given strings."""

    words: tuple[str, ...]

    def __init__(self, *words: str) -> None:
        object.__setattr__(self, "words", words)

    def fault(self, value: Any, sizes: Sizes) -> str | None:
        """Return an error message or None."""
        return None if value in self.words else f"is {value!r}, expected one of {self.words}"


BINDING = (Shape, Size)  # those that bind names come first
VALUES = (Within, Offsets, NotEmpty, OneOf)


def is_rising(values: npt.NDArray[Any]) -> bool:
    """Return whether no number is smaller than the one before."""
    blocks = (values[first : first + _BLOCK + 1] for first in range(0, len(values), _BLOCK))
    return all(bool((block[1:] >= block[:-1]).all()) for block in blocks)


def _blocks(values: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    flat = values.reshape(-1)
    for first in range(0, len(flat), _BLOCK):
        yield flat[first : first + _BLOCK]


def _all_within(part: npt.NDArray[Any], low: float, high: float) -> bool:
    if part.dtype.kind not in "biuf":
        return False
    return bool(part.min() >= low and part.max() < high)  # False for NaN


def _fits(expected: Length, found: int, sizes: Sizes) -> bool:
    """Whether a length is the expected one; a size that is not set yet is set to it."""
    if isinstance(expected, int):
        return found == expected
    more = int(expected.endswith(_ONE_MORE))
    return found >= more and sizes.setdefault(_name(expected), found - more) == found - more


def _name(length: Length) -> str:
    return str(length).removesuffix(_ONE_MORE)
