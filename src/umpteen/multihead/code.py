"""Labels as numbers of several digits, one digit per head (Eq. 10 and 11 of the paper)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from umpteen.errors import LabelsError, ParameterError
from umpteen.multihead.lengths import balanced_lengths, confusion, descending_lengths
from umpteen.multihead.orders import clustered_order, shuffled_order
from umpteen.neural.labels import check_range
from umpteen.storage import Sizes, refusals, storable
from umpteen.validation import Features, check_k

IntArray = npt.NDArray[np.int64]
Ints = TypeVar("Ints", npt.NDArray, Tensor)

_MAX_STRIDE = 2**62  # beyond any label: such a head's digit is always 0


@storable
@dataclass(frozen=True, eq=False)
class LabelCode:
    """The digits of labels: mixed radix, with the most significant digit for the first head.

    `lengths` has the number of values of each digit. Their product may exceed `n_labels`; codes
    without a label (padding) decode to -1. By default, a label's digits are those of its id. With
    `order`, they are those of its place p, where `order[p]` is the label.

    >>> code = LabelCode(10, [3, 4])
    >>> code.encode(np.array([0, 7, 9]))
    array([[0, 0],
           [1, 3],
           [2, 1]])
    >>> code.decode(np.array([[1, 3], [2, 3]]))
    array([ 7, -1])
    """

    n_labels: int
    lengths: list[int]
    order: IntArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_labels", check_k(self.n_labels, "n_labels"))
        lengths = [check_k(length, "a head's length") for length in self.lengths]
        object.__setattr__(self, "lengths", lengths)
        if math.prod(lengths) < self.n_labels:
            raise ParameterError(
                f"heads of {lengths} have {math.prod(lengths):,} codes, too few for "
                f"{self.n_labels:,} labels: make one longer, or use LabelCode.balanced"
            )
        if self.order is not None:
            object.__setattr__(self, "order", _permutation(self.order, self.n_labels))

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: what the constructor would refuse."""
        yield from refusals(self)

    @classmethod
    def balanced(cls, n_labels: int, n_heads: int = 2) -> Self:
        """Return heads of nearly equal length, which suits `ProductHead`."""
        return cls(n_labels, balanced_lengths(n_labels, n_heads))

    @classmethod
    def descending(cls, n_labels: int, n_heads: int = 2, ratio: float | None = None) -> Self:
        """Return heads about `ratio` times as long as the next, for `CascadeHead`, `SamplingHead`.

        By default n, n^2, n^3, ... from the last head to the first.
        """
        return cls(n_labels, descending_lengths(n_labels, n_heads, ratio))

    def shuffled(self, random_state: int | None = 0) -> Self:
        """Return the same heads with labels in random order."""
        return replace(self, order=shuffled_order(self.n_labels, random_state))

    def clustered(self, label_features: Features, random_state: int | None = 0) -> Self:
        """Return the same heads with similar labels in the same groups.

        `label_features` are `(n_labels, d)`, sparse or dense: centroids, texts or embeddings.
        """
        borders = [np.append(np.arange(0, self.n_labels, s), self.n_labels) for s in self.strides]
        return replace(self, order=clustered_order(label_features, borders[:-1], random_state))

    @property
    def n_heads(self) -> int:
        return len(self.lengths)

    @property
    def strides(self) -> list[int]:
        """Return by how much the place grows when a head's digit grows by one."""
        behind = [math.prod(self.lengths[h + 1 :]) for h in range(self.n_heads)]
        return [min(stride, _MAX_STRIDE) for stride in behind]

    @property
    def n_groups(self) -> list[int]:
        """Return how many values the first h digits take together, for h = 1, 2, ..."""
        return [math.ceil(self.n_labels / stride) for stride in self.strides]

    def confusion_degree(self, *, parallel: bool = False) -> float:
        """Return the paper's measure of how many labels share digits (Eq. 15); lower is better.

        In the heads' order; `parallel` heads have none, and their worst order counts: ascending.
        """
        return confusion(sorted(self.lengths) if parallel else self.lengths)

    def encode(self, labels: Ints) -> Ints:
        """Return the digits of labels, an array or a tensor of any shape, along a new last axis."""
        check_range(labels, self.n_labels)
        return self.digits(_look_up(self.places, labels))

    def decode(self, digits: Ints) -> Ints:
        """Return the labels of digits (along the last axis), -1 for padding."""
        strides, lengths = _like(digits, self.strides), _like(digits, self.lengths)
        if ((digits < 0) | (digits >= lengths)).any():
            raise LabelsError(f"each digit must be at least 0 and below its head's {self.lengths}")
        places = (digits * strides).sum(-1)
        real = places < self.n_labels
        labels: Ints = _look_up(self.order, places * real) * real - 1 * ~real
        return labels

    def digits(self, places: Ints) -> Ints:
        """Return the digits of places, along a new last axis."""
        each = zip(self.strides, self.lengths, strict=True)
        digits = [places // stride % length for stride, length in each]
        stack: Any = torch.stack if isinstance(places, Tensor) else np.stack
        stacked: Ints = stack(digits, -1)
        return stacked

    @cached_property
    def places(self) -> IntArray | None:
        """Return the place of each label, the inverse of `order`."""
        if self.order is None:
            return None
        places = np.empty(self.n_labels, np.int64)
        places[self.order] = np.arange(self.n_labels)
        return places


def _look_up(table: IntArray | None, values: Ints) -> Ints:
    return values if table is None else _like(values, table)[values]


def _like(values: Ints, numbers: Sequence[int] | IntArray) -> Ints:
    """Numbers as an array or a tensor, whichever `values` are."""
    array = np.asarray(numbers, np.int64)
    return torch.from_numpy(array).to(values.device) if isinstance(values, Tensor) else array


def _permutation(order: npt.NDArray, n_labels: int) -> IntArray:
    order = np.asarray(order)
    if order.shape != (n_labels,) or not np.array_equal(np.sort(order), np.arange(n_labels)):
        raise ParameterError(
            f"order must hold each label from 0 to {n_labels - 1:,} once, "
            f"but an array of shape {order.shape} does not"
        )
    return order.astype(np.int64)
