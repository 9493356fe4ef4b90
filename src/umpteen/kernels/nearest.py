"""The nearest of many vectors: exact scores for those that a rough score lets through.

A matrix product is quick, but the last bits of its numbers depend on the library, on the number
of threads and on the place of a row; equal vectors may come out with unequal scores. So it only
decides who is looked at: `product` adds up in one fixed order, and its scores alone count.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from umpteen.kernels.topk import Labels, Scores, best_first, offer

Vectors = npt.NDArray[np.float32]
_SUMS = 8  # independent, so that they fit one register; always added up in the same order


@njit(nogil=True, cache=True)
def keep_nearest(
    rough: Scores, queries: Vectors, vectors: Vectors, present: Any, first: int, margin: float,
    labels: Labels, scores: Scores, kept: Any,
) -> None:  # fmt: skip
    """Offer a part of the vectors, which begins at id `first`, to the best k of each query.

    `rough` (queries, part) is off by `margin` at most; `present` (part) says who may be answered;
    `labels`, `scores` (queries, k) and `kept` (queries) are as `offer` leaves them. One comparison
    per rough score, and one product per vector that could be among the best so far.
    """
    k = labels.shape[1]
    for row in range(len(queries)):
        for place in range(len(vectors)):
            if not present[place]:
                continue
            if kept[row] == k and rough[row, place] < scores[row, 0] - margin:
                continue
            score = product(queries[row], vectors[place])
            kept[row] = offer(labels[row], scores[row], kept[row], first + place, score)


@njit(nogil=True, cache=True)
def scan_nearest(
    queries: Vectors, vectors: Vectors, present: Any, first: int, k: int
) -> tuple[Labels, Scores]:
    """Return the best k of some of the vectors, from id `first` on, for a few queries.

    One product per query and vector, and each vector is read once: for a single query that is
    all the time there is.
    """
    labels = np.empty((len(queries), k), np.int32)
    scores = np.empty((len(queries), k), np.float32)
    kept = np.zeros(len(queries), np.int64)
    for place in range(len(vectors)):
        if present[place]:
            for row in range(len(queries)):
                score = product(queries[row], vectors[place])
                kept[row] = offer(labels[row], scores[row], kept[row], first + place, score)
    order_nearest(labels, scores, kept)
    return labels, scores


@njit(nogil=True, cache=True)
def merge_nearest(labels: Labels, scores: Scores, k: int) -> tuple[Labels, Scores]:
    """Return the best k of each row of (queries, any number); -1 is none."""
    best_labels = np.empty((len(labels), k), np.int32)
    best_scores = np.empty((len(labels), k), np.float32)
    for row in range(len(labels)):
        kept = 0
        for place in range(labels.shape[1]):
            label, score = labels[row, place], scores[row, place]
            if label >= 0:
                kept = offer(best_labels[row], best_scores[row], kept, label, score)
        best_first(best_labels[row], best_scores[row], kept)
    return best_labels, best_scores


@njit(nogil=True, cache=True)
def order_nearest(labels: Labels, scores: Scores, kept: Any) -> None:
    """Put each query's best in order, in place, and fill up with -1 / -inf."""
    for row in range(len(labels)):
        best_first(labels[row], scores[row], kept[row])


@njit(nogil=True, cache=True)
def rank_candidates(queries: Vectors, vectors: Vectors, candidates: Any) -> tuple[Labels, Scores]:
    """Return candidates (queries, k) in the order of their exact scores; -1 is none."""
    n_queries, k = candidates.shape
    labels = np.empty((n_queries, k), np.int32)
    scores = np.empty((n_queries, k), np.float32)
    for row in range(n_queries):
        kept = 0
        for label in candidates[row]:
            if label >= 0:
                score = product(queries[row], vectors[label])
                kept = offer(labels[row], scores[row], kept, label, score)
        best_first(labels[row], scores[row], kept)
    return labels, scores


@njit(nogil=True, cache=True)
def product(left: Any, right: Any) -> Any:
    """Return the inner product in float64, rounded once at the end; the same bits everywhere."""
    sums = np.zeros(_SUMS, np.float64)
    whole = len(left) - len(left) % _SUMS
    for start in range(0, whole, _SUMS):
        for lane in range(_SUMS):
            sums[lane] += np.float64(left[start + lane]) * np.float64(right[start + lane])
    for place in range(whole, len(left)):
        sums[0] += np.float64(left[place]) * np.float64(right[place])
    total = 0.0
    for lane in range(_SUMS):
        total += sums[lane]
    return np.float32(total)
