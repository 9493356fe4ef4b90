"""Evidence for a candidate label: vectors, shared words, and both weighed together.

Each function adds up in one fixed order, so that a row's numbers do not depend on its neighbours.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from umpteen.kernels.nearest import product

_FARTHEST = 30.0  # standard deviations; relevant candidates go far


@njit(nogil=True, cache=True)
def rows_times_matrix(rows: Any, matrix: Any) -> Any:
    """Return rows @ matrix.T."""
    made = np.empty((len(rows), len(matrix)), np.float32)
    for row in range(len(rows)):
        for column in range(len(matrix)):
            made[row, column] = product(rows[row], matrix[column])
    return made


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def label_products(
    lifted: Any, bags: Any, own: Any, texts: Any, centroids: Any, candidates: Any
) -> Any:
    """Return (3, rows, candidates): products with each label's three vectors; 0 for -1."""
    n_rows, n_candidates = candidates.shape
    found = np.zeros((3, n_rows, n_candidates), np.float32)
    for row in range(n_rows):
        for place in range(n_candidates):
            label = candidates[row, place]
            if label < 0:
                continue
            by_own = by_text = by_centroid = np.float32(0)
            for i in range(bags.shape[1]):
                by_own += lifted[row, i] * own[label, i]
                by_text += bags[row, i] * texts[label, i]
                by_centroid += bags[row, i] * centroids[label, i]
            found[0, row, place] = by_own
            found[1, row, place] = by_text
            found[2, row, place] = by_centroid
    return found


@njit(nogil=True, cache=True)
def nearest_by_words(
    indptr: Any, indices: Any, values: Any, word_ptr: Any, word_labels: Any, word_values: Any,
    sums: Any, is_touched: Any, touched: Any, n: int,
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:  # fmt: skip
    """Return the n labels of the largest positive inner products, in any order; -1 for none.

    Also return the largest product of each row, or 0 if none is positive. `sums`, `is_touched` and
    `touched` have a place for each label; the first two are zero before and after.
    """
    found = np.full((len(indptr) - 1, n), -1, np.int32)
    highest = np.zeros(len(indptr) - 1, np.float32)
    best = np.empty(n, np.float32)
    for row in range(len(indptr) - 1):
        n_touched = 0
        for entry in range(indptr[row], indptr[row + 1]):
            word = indices[entry]
            for place in range(word_ptr[word], word_ptr[word + 1]):
                label = word_labels[place]
                if not is_touched[label]:
                    is_touched[label], touched[n_touched] = True, label
                    n_touched += 1
                sums[label] += values[entry] * word_values[place]
        best[:] = 0
        least = 0  # of `best`
        for place in range(n_touched):
            label = touched[place]
            if sums[label] > best[least]:
                best[least], found[row, least] = sums[label], label
                least = int(np.argmin(best))
            sums[label], is_touched[label] = 0, False
        highest[row] = best.max()
    return found, highest


@njit(nogil=True, cache=True)
def best_by_words(
    indptr: Any, indices: Any, values: Any, word_ptr: Any, word_labels: Any, word_values: Any,
    sums: Any,
) -> npt.NDArray[np.float32]:  # fmt: skip
    """Return the largest inner product of each row with any label, 0 if none is above.

    `sums` has a place for each label, zero before and after.
    """
    found = np.zeros(len(indptr) - 1, np.float32)
    for row in range(len(indptr) - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            word = indices[entry]
            for place in range(word_ptr[word], word_ptr[word + 1]):
                sums[word_labels[place]] += values[entry] * word_values[place]
        for entry in range(indptr[row], indptr[row + 1]):
            word = indices[entry]
            for place in range(word_ptr[word], word_ptr[word + 1]):
                label = word_labels[place]
                found[row] = max(found[row], sums[label])
                sums[label] = 0
    return found


@njit(nogil=True, cache=True)
def word_products(
    indptr: Any, indices: Any, values: Any, label_indptr: Any, label_indices: Any,
    label_values: Any, long_place: Any, word_ptr: Any, word_places: Any, word_values: Any,
    dense: Any, sums: Any, candidates: Any,
) -> npt.NDArray[np.float32]:  # fmt: skip
    """Return inner products of sparse rows and those of their candidates (n, any); 0 for -1.

    A label's `long_place` is -1, or its place in a posting list of long rows: `word_places` of a
    feature, with `word_values`. Features ascend in all rows, so both ways add up in one order.
    `dense` has a place for each feature and `sums` for each long row, zero before and after.
    """
    found = np.zeros(candidates.shape, np.float32)
    for row in range(candidates.shape[0]):
        for entry in range(indptr[row], indptr[row + 1]):
            word, value = indices[entry], values[entry]
            dense[word] = value
            for place in range(word_ptr[word], word_ptr[word + 1]):
                sums[word_places[place]] += word_values[place] * value
        for place in range(candidates.shape[1]):
            label = candidates[row, place]
            if label < 0:
                continue
            if long_place[label] >= 0:
                found[row, place] = sums[long_place[label]]
                continue
            total = np.float32(0)
            for entry in range(label_indptr[label], label_indptr[label + 1]):
                total += label_values[entry] * dense[label_indices[entry]]
            found[row, place] = total
        for entry in range(indptr[row], indptr[row + 1]):
            dense[indices[entry]] = 0
        sums[:] = 0
    return found


@njit(nogil=True, cache=True)
def quadratic_terms(evidence: Any, means: Any, scales: Any) -> Any:
    """Return 1, the standardised evidence, and the products of each two columns of it."""
    n_columns = evidence.shape[1]
    terms = np.empty((len(evidence), 1 + n_columns + n_columns * (n_columns + 1) // 2), np.float64)
    for row in range(len(evidence)):
        terms[row, 0] = 1.0
        for i in range(n_columns):
            value = (evidence[row, i] - means[i]) / scales[i]
            terms[row, 1 + i] = min(max(value, -_FARTHEST), _FARTHEST)
        place = 1 + n_columns
        for i in range(n_columns):
            for j in range(i, n_columns):
                terms[row, place] = terms[row, 1 + i] * terms[row, 1 + j]
                place += 1
    return terms


@njit(nogil=True, cache=True)
def quadratic_probabilities(evidence: Any, means: Any, scales: Any, weights: Any) -> Any:
    """Return the sigmoid of the weighted sum of `quadratic_terms`, for each row."""
    n_columns = evidence.shape[1]
    found, terms = np.empty(len(evidence), np.float32), np.empty(n_columns, np.float64)
    for row in range(len(evidence)):
        for i in range(n_columns):
            value = (evidence[row, i] - means[i]) / scales[i]
            terms[i] = min(max(value, -_FARTHEST), _FARTHEST)
        total = weights[0] * 1.0
        for i in range(n_columns):
            total += weights[1 + i] * terms[i]
        place = 1 + n_columns
        for i in range(n_columns):
            for j in range(i, n_columns):
                total += weights[place] * (terms[i] * terms[j])
                place += 1
        found[row] = 1.0 / (1.0 + np.exp(-total))
    return found
