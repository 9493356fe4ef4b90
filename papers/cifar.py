"""CIFAR-10, or a part of it, as several pages need it."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from papers import sets
from umpteen import data

NAME = "images/cifar10"

Part = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]


def is_there() -> bool:
    """Whether the images can be loaded."""
    return bool(sets.available([NAME]))


@cache
def images(per_class: int) -> tuple[Part, Part]:
    """Images and classes to learn from, and to test on, in random order; classes are balanced."""
    found = data.load(NAME)
    return _some(found.train, per_class, 0), _some(found.test, per_class, 1)


def _some(split: Any, per_class: int, seed: int) -> Part:
    random = np.random.default_rng(seed)
    order = random.permutation(len(split))
    classes = split.y[order]
    rank = np.zeros(len(order), np.int64)
    for label in np.unique(classes):
        rank[classes == label] = np.arange((classes == label).sum())
    chosen = order[rank < per_class]
    return split.X[chosen], split.y[chosen]
