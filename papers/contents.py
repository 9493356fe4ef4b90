"""What a page about a paper is made of."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np


@dataclass(frozen=True)
class Value:
    """A number of ours, and what belongs beside it: its spread over runs, the paper's number.

    >>> print(Value(80.871, spread=0.2, paper=80.87, digits=1))
    80.9 ± 0.2 (paper 80.9)
    """

    ours: float
    spread: float | None = None
    paper: float | None = None
    digits: int = 2

    @property
    def measured(self) -> str:
        """Our number and its spread."""
        number = f"{self.ours:.{self.digits}f}"
        return number if self.spread is None else f"{number} ± {self.spread:.{self.digits}f}"

    @property
    def printed(self) -> str:
        """The paper's number, as said beside ours; empty if there is none."""
        return "" if self.paper is None else f"paper {self.paper:.{self.digits}f}"

    def __str__(self) -> str:
        return f"{self.measured} ({self.printed})" if self.printed else self.measured


def over_seeds(runs: Any, paper: float | None = None, digits: int = 2) -> Value:
    """Mean and standard deviation of what was measured with several seeds."""
    numbers = np.asarray(runs, np.float64)
    spread = float(numbers.std(ddof=1)) if len(numbers) > 1 else None
    return Value(float(numbers.mean()), spread, paper, digits)


Cell: TypeAlias = Value | str | int | None


@dataclass(frozen=True)
class Table:
    """Rows of cells; the first names the row."""

    caption: str
    columns: list[str]
    rows: list[list[Cell]]


@dataclass(frozen=True)
class Figure:
    """A picture, what it shows in words for who cannot see it, and the numbers it was made of."""

    caption: str
    says: str
    svg: str
    numbers: dict[str, Any] = field(default_factory=dict)


Block: TypeAlias = Table | Figure | str  # a text is a paragraph


@dataclass(frozen=True)
class Section:
    """One claim of a paper.

    `claim` says in a sentence what the paper claims, `data` on what it is measured here, and
    `measure` does it; what it gives is shown in that order.
    """

    title: str
    claim: str
    data: str
    measure: Callable[[], Iterable[Block]]


@dataclass(frozen=True)
class Measured:
    """A section, what came out, and how long it took."""

    section: Section
    blocks: list[Block]
    seconds: float
