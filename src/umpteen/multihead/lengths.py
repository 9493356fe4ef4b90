"""How long the heads of a code should be, and how much a choice confuses labels."""

import math
from collections.abc import Sequence

from umpteen.errors import ParameterError
from umpteen.validation import check_k


def balanced_lengths(n_labels: int, n_heads: int) -> list[int]:
    """Return lengths that differ by one at most, of the smallest sum: best for parallel heads.

    >>> balanced_lengths(1_728_000, 3), balanced_lengths(10, 2)
    ([120, 120, 120], [4, 3])
    """
    check_k(n_labels, "n_labels"), check_k(n_heads, "n_heads")
    short = max(1, math.floor(n_labels ** (1 / n_heads)))
    short -= short**n_heads > n_labels  # the root may be rounded up
    n_longer = next(
        n for n in range(n_heads + 1) if (short + 1) ** n * short ** (n_heads - n) >= n_labels
    )
    return [short + 1] * n_longer + [short] * (n_heads - n_longer)


def descending_lengths(n_labels: int, n_heads: int, ratio: float | None = None) -> list[int]:
    """Return lengths of about `ratio` times the next, the first as long as it must be.

    By default the ratio is the last head's length: two heads are as n^2 and n, three as n^3, n^2
    and n, near the lengths that the paper chose for 4,000 to 670,000 labels.

    >>> descending_lengths(1_000_000, 2), descending_lengths(1_000_000, 3, ratio=2)
    ([10000, 100], [200, 100, 50])
    """
    check_k(n_labels, "n_labels"), check_k(n_heads, "n_heads")
    ratio = n_labels ** (2 / (n_heads * (n_heads + 1))) if ratio is None else ratio
    if not 1 <= ratio < math.inf:
        raise ParameterError(
            f"ratio={ratio!r} is not possible: heads get shorter, expected 1 or more"
        )
    last = (n_labels / ratio ** (n_heads * (n_heads - 1) / 2)) ** (1 / n_heads)
    rest = [max(1, round(last * ratio**power)) for power in range(n_heads - 1)][::-1]
    first = math.ceil(n_labels / math.prod(rest))
    return sorted([first, *rest], reverse=True)


def confusion(lengths: Sequence[int]) -> float:
    """Return Eq. 15 for heads in this order, with its indices put right.

    It is the product, over the heads after the first, of how many codes they and those behind them
    make, per code of the one before.

    >>> confusion([10, 10]), confusion([20, 5]), confusion([5, 20])
    (1.0, 0.25, 4.0)
    """
    behind = [math.prod(lengths[h:]) for h in range(1, len(lengths))]
    return math.prod(codes / before for codes, before in zip(behind, lengths, strict=False))
