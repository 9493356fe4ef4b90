"""The best k of many scores, exactly: equal scores stand by label id, -1 / -inf fill the rest.

Any loop that scores labels can keep its best by `offer`, and put them in order by `best_first`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.kernels.compiling import frozen, inlined, kernel, shared

Labels = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]


def frozen_csr(matrix: csr_matrix) -> tuple[npt.NDArray[Any], ...]:
    """Return (indptr, indices, data), read-only: numba compiles once for arrays from anywhere."""
    return frozen((matrix.indptr, matrix.indices, matrix.data))  # type: ignore[no-any-return]


@kernel
def sparse_topk(samples: Any, postings: Any, n_labels: int, k: int) -> tuple[Labels, Scores]:
    """Return the best k non-zero scores of `samples @ postings`, both as `frozen_csr` gives.

    `samples` are (n, features), `postings` (features, n_labels). One multiplication per pair of a
    sample's entry and a label's entry of the same feature; 9 bytes per label of working memory.
    """
    indptr, features, values = samples
    postings_indptr, postings_labels, postings_values = postings
    n_samples = len(indptr) - 1
    best_labels = np.empty((n_samples, k), np.int32)
    best_scores = np.empty((n_samples, k), np.float32)
    scores = np.zeros(n_labels, np.float32)
    seen = np.zeros(n_labels, np.bool_)
    touched = np.empty(n_labels, np.int32)
    for row in range(n_samples):
        row_labels, row_scores = best_labels[row], best_scores[row]
        n_touched = 0
        for entry in range(indptr[row], indptr[row + 1]):
            feature = features[entry]
            for posting in range(postings_indptr[feature], postings_indptr[feature + 1]):
                label = postings_labels[posting]
                scores[label] += values[entry] * postings_values[posting]
                if not seen[label]:
                    seen[label] = True
                    touched[n_touched] = label
                    n_touched += 1
        kept = 0
        for label in touched[:n_touched]:
            if scores[label] != 0:
                kept = offer(row_labels, row_scores, kept, label, scores[label])
            scores[label] = 0
            seen[label] = False
        best_first(row_labels, row_scores, kept)
    return best_labels, best_scores


@kernel
def dense_topk(scores: Scores, k: int) -> tuple[Labels, Scores]:
    """Return the best k non-zero scores of each row of `scores` (n, n_labels)."""
    n_samples, n_labels = scores.shape
    best_labels = np.empty((n_samples, k), np.int32)
    best_scores = np.empty((n_samples, k), np.float32)
    for row in range(n_samples):
        row_labels, row_scores = best_labels[row], best_scores[row]
        kept = 0
        for label in range(n_labels):
            if scores[row, label] != 0:
                kept = offer(row_labels, row_scores, kept, label, scores[row, label])
        best_first(row_labels, row_scores, kept)
    return best_labels, best_scores


@kernel
def finite_topk(scores: Scores, k: int) -> tuple[Labels, Scores]:
    """Return the best k scores of each row of `scores` (n, n_labels), -inf left out."""
    n_samples, n_labels = scores.shape
    best_labels = np.empty((n_samples, k), np.int32)
    best_scores = np.empty((n_samples, k), np.float32)
    for row in range(n_samples):
        kept = 0
        for label in range(n_labels):
            if scores[row, label] > -np.inf:
                kept = offer(best_labels[row], best_scores[row], kept, label, scores[row, label])
        best_first(best_labels[row], best_scores[row], kept)
    return best_labels, best_scores


@shared
def offer(labels: Labels, scores: Scores, kept: int, label: int, score: np.float32) -> int:
    """Keep a label if it is among the best `len(labels)` so far; returns how many are kept.

    The first `kept` entries are a heap with the worst on top. O(log k), O(1) if it is refused.
    """
    if kept < len(labels):
        labels[kept], scores[kept] = label, score
        _rise(labels, scores, kept)
        return kept + 1
    if _worse(labels[0], scores[0], label, score):
        labels[0], scores[0] = label, score
        _sink(labels, scores, kept)
    return kept


@shared
def best_first(labels: Labels, scores: Scores, kept: int) -> None:
    """Put what `offer` kept in order, in place, and fill up with -1 / -inf. O(k log k)."""
    for end in range(kept - 1, 0, -1):
        _swap(labels, scores, 0, end)
        _sink(labels, scores, end)
    for place in range(kept, len(labels)):
        labels[place], scores[place] = -1, -np.inf


@inlined
def _worse(label: int, score: np.float32, other_label: int, other_score: np.float32) -> Any:
    return score < other_score or (score == other_score and label > other_label)


@inlined
def _swap(labels: Labels, scores: Scores, i: int, j: int) -> None:
    labels[i], labels[j] = labels[j], labels[i]
    scores[i], scores[j] = scores[j], scores[i]


@inlined
def _rise(labels: Labels, scores: Scores, child: int) -> None:
    while child > 0:
        parent = (child - 1) // 2
        if not _worse(labels[child], scores[child], labels[parent], scores[parent]):
            return
        _swap(labels, scores, child, parent)
        child = parent


@inlined
def _sink(labels: Labels, scores: Scores, kept: int) -> None:
    parent = 0
    while 2 * parent + 1 < kept:
        child = 2 * parent + 1
        if child + 1 < kept and _worse(
            labels[child + 1], scores[child + 1], labels[child], scores[child]
        ):
            child += 1
        if not _worse(labels[child], scores[child], labels[parent], scores[parent]):
            return
        _swap(labels, scores, child, parent)
        parent = child
