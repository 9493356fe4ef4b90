"""Sizes of heads, checked before memory is taken for them."""

import os

import torch

from umpteen.errors import MemoryBudgetError, ParameterError
from umpteen.validation import check_k

_MOST = 2**62  # beyond, a label id is no int64
_BYTES = 4  # of a weight


def check_sizes(in_features: int, n_labels: int) -> tuple[int, int]:
    """Return both as numbers of at least 1 that a tensor can have.

    >>> check_sizes(256, 10**30)
    Traceback (most recent call last):
    umpteen.errors.ParameterError: n_labels=1,000,... is not possible: use at most 2**62
    """
    sizes = {
        "in_features": check_k(in_features, "in_features"),
        "n_labels": check_k(n_labels, "n_labels"),
    }
    for name, size in sizes.items():
        if size > _MOST:
            raise ParameterError(f"{name}={size:,} is not possible: use at most 2**62")
    return sizes["in_features"], sizes["n_labels"]


def check_room(n_weights: int) -> None:
    """Refuse more weights than this machine has memory for, where they are made in its memory."""
    available = _memory()
    if _BYTES * n_weights > available and torch.get_default_device().type == "cpu":
        raise MemoryBudgetError(
            f"a head with {n_weights:,} weights needs {_BYTES * n_weights / 1e9:,.0f} GB, but this "
            f"machine has {available / 1e9:,.0f} GB: reduce in_features or n_labels, or use a "
            "smaller head, such as umpteen.neural.heads.Product"
        )


def _memory() -> float:
    """Return the bytes of memory; infinite where that cannot be told."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return float("inf")
