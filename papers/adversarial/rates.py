"""The learning rate of a method: the one that is best on a validation split."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Run = TypeVar("Run")


def best_rate(
    rates: Sequence[float], run: Callable[[float], Run], worth: Callable[[Run], float]
) -> tuple[float, Run]:
    """Return the learning rate whose run is worth most, and that run; ties go to the first rate.

    >>> best_rate((0.1, 0.3, 1.0), lambda rate: 10 * rate, lambda run: -abs(run - 4))
    (0.3, 3.0)
    """
    runs = {rate: run(rate) for rate in rates}
    best = max(runs, key=lambda rate: worth(runs[rate]))
    return best, runs[best]


def neighbours(rates: Sequence[float], rate: float) -> tuple[float, float]:
    """Return a rate and the next smaller one of several; of the smallest, the next larger one.

    >>> neighbours((0.03, 0.1, 0.3), 0.3), neighbours((0.03, 0.1, 0.3), 0.03)
    ((0.3, 0.1), (0.03, 0.1))
    """
    place = rates.index(rate)
    return rate, rates[place - 1 if place else 1]
