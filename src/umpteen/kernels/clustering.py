"""Split sparse rows into two parts of given sizes, by spherical 2-means."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def _add_row(indptr, indices, data, row, sign, difference):
    for entry in range(indptr[row], indptr[row + 1]):
        difference[indices[entry]] += sign * data[entry]


@njit(nogil=True, cache=True)
def _scores(indptr, indices, data, rows, difference):
    scores = np.zeros(len(rows), np.float32)
    for i in range(len(rows)):
        for entry in range(indptr[rows[i]], indptr[rows[i] + 1]):
            scores[i] += data[entry] * difference[indices[entry]]
    return scores


@njit(nogil=True, cache=True)
def _clear(indptr, indices, rows, difference):
    n_entries = 0
    for row in rows:
        n_entries += indptr[row + 1] - indptr[row]
    if n_entries > len(difference):
        difference[:] = 0
        return
    for row in rows:
        for entry in range(indptr[row], indptr[row + 1]):
            difference[indices[entry]] = 0


@njit(nogil=True, cache=True)
def bisect(indptr, indices, data, rows, left_size, max_rounds, seed, difference):
    """Reorder `rows` so that the first `left_size` form one cluster and the rest the other.

    Rounds of: score each row by its inner product with the difference of the two centres, give
    the `left_size` largest to the left (equal scores keep their order). Stops when nothing
    moves. `difference` (features,) holds zeros, before and after. Costs a few passes over the
    rows per round.
    """
    n = len(rows)
    previous = -np.inf
    start = rows[seed % n]
    _add_row(indptr, indices, data, start, np.float32(1), difference)
    farthest = rows[np.argmin(_scores(indptr, indices, data, rows, difference))]
    _add_row(indptr, indices, data, farthest, np.float32(-1), difference)
    for round_ in range(max_rounds):
        scores = -_scores(indptr, indices, data, rows, difference)
        _clear(indptr, indices, rows, difference)
        order = np.argsort(scores, kind="mergesort")
        rows[:] = rows[order]
        gain = 0.0
        for i in range(n):
            gain += -scores[order[i]] if i < left_size else scores[order[i]]
        if round_ == max_rounds - 1 or (round_ > 1 and gain <= previous * 1.0001):
            break
        previous = gain
        left_scale = np.float32(1.0 / left_size)
        right_scale = np.float32(-1.0 / (n - left_size))
        for i in range(n):
            scale = left_scale if i < left_size else right_scale
            _add_row(indptr, indices, data, rows[i], scale, difference)
