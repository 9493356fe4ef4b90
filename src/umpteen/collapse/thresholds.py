"""One threshold for the scores of all labels, chosen on samples with labels.

Samples come in blocks of `(relevant, scores)`, both `(n, n_labels)`; nothing of that size is kept.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

Blocks = Iterable[tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]]

_LIMIT = 20.0  # scores beyond count as this
_BINS = 2**14


def subset_threshold(blocks: Blocks, at_least_one: bool = False) -> float:
    """Return the score from which labels are to be taken for most sets to be exactly right.

    A sample is right if the threshold is above its best wrong label and not above its worst right
    one; the answer is the middle of the stretch where most samples are.

    >>> scores = np.array([[3.0, 1.0], [2.0, 0.0], [1.5, 2.5]])
    >>> subset_threshold([(np.array([[1, 0], [1, 0], [1, 1]], bool), scores)])
    1.25
    """
    lows, highs = [], []
    for relevant, scores in blocks:
        low = np.where(relevant, -np.inf, scores).max(axis=1, initial=-np.inf)
        high = np.where(relevant, scores, np.inf).min(axis=1, initial=np.inf)
        if at_least_one:  # a single right label that is best is right under any threshold
            high[(relevant.sum(axis=1) == 1) & (high > low)] = np.inf
            high[~relevant.any(axis=1)] = -np.inf  # never right
        lows.append(low)
        highs.append(high)
    low, high = np.concatenate([*lows, []]), np.concatenate([*highs, []])
    low, high = low[low < high], high[low < high]
    if not len(low):
        return 0.0
    # Just above `low` a sample becomes right, just above `high` it is not any more.
    points = np.concatenate([low, high])
    changes = np.concatenate([np.ones(len(low)), -np.ones(len(high))])
    order = np.lexsort((changes, points))
    points, right = points[order], np.cumsum(changes[order])
    best = int(right.argmax())
    return _middle(points[best], points[best + 1])


def f1_threshold(blocks: Blocks, at_least_one: bool = False) -> float:
    """Return the score from which labels are to be taken for the best micro-F1.

    To within 40 / 2^14; `at_least_one` makes no difference here.
    """
    taken, right = np.zeros(_BINS), np.zeros(_BINS)
    n_relevant = 0
    for relevant, scores in blocks:
        bins = ((np.clip(scores, -_LIMIT, _LIMIT) + _LIMIT) / (2 * _LIMIT) * (_BINS - 1)).astype(
            int
        )
        taken += np.bincount(bins.ravel(), minlength=_BINS)
        right += np.bincount(bins[relevant], minlength=_BINS)
        n_relevant += int(relevant.sum())
    taken, right = np.cumsum(taken[::-1])[::-1], np.cumsum(right[::-1])[::-1]
    f1 = 2 * right / np.maximum(taken + n_relevant, 1)
    first = int(f1.argmax())
    worse = np.flatnonzero(f1[first:] < f1[first])  # the middle of the stretch that is as good
    last = first + int(worse[0]) - 1 if len(worse) else _BINS - 1
    return (first + last) / 2 / (_BINS - 1) * 2 * _LIMIT - _LIMIT


def _middle(low: float, high: float) -> float:
    if not np.isfinite(low):
        return float(min(high, 0.0)) if np.isfinite(high) else 0.0
    return float((low + high) / 2) if np.isfinite(high) else float(max(low + 1, 0.0))
