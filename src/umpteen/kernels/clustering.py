"""Split sparse rows into two clusters of given sizes, by spherical 2-means."""

import numpy as np

from umpteen.kernels import simd
from umpteen.kernels.compiling import inlined, kernel
from umpteen.kernels.sorting import stable_order

_AHEAD = 2  # rows from reading one to using it


@inlined
def _add_row(indptr, indices, data, row, sign, difference):
    for entry in range(indptr[row], indptr[row + 1]):
        difference[indices[entry]] += sign * data[entry]


@inlined
def _expect(indptr, indices, data, rows, i):
    """Start to read row `i`, which may be anywhere in memory."""
    if i < len(rows):
        for entry in range(indptr[rows[i]], indptr[rows[i] + 1], simd.WIDTH):
            simd.prefetch(indices, entry)
            simd.prefetch(data, entry)


@inlined
def _scores(indptr, indices, data, rows, difference, scores):
    for i in range(len(rows)):
        _expect(indptr, indices, data, rows, i + _AHEAD)
        total = np.float32(0)
        for entry in range(indptr[rows[i]], indptr[rows[i] + 1]):
            total += data[entry] * difference[indices[entry]]
        scores[i] = total


@inlined
def _clear(indptr, indices, rows, difference):
    n_entries = 0
    for i in range(len(rows)):
        row = rows[i]
        n_entries += indptr[row + 1] - indptr[row]
    if n_entries > len(difference):
        for feature in range(len(difference)):
            difference[feature] = 0
        return
    for i in range(len(rows)):
        row = rows[i]
        for entry in range(indptr[row], indptr[row + 1]):
            difference[indices[entry]] = 0


@kernel
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
    scores, moved = np.empty(n, np.float32), rows.copy()
    _scores(indptr, indices, data, rows, difference, scores)
    farthest = 0
    for i in range(n):
        if scores[i] < scores[farthest]:
            farthest = i
    _add_row(indptr, indices, data, rows[farthest], np.float32(-1), difference)
    for round_ in range(max_rounds):
        _scores(indptr, indices, data, rows, difference, scores)
        _clear(indptr, indices, rows, difference)
        for i in range(n):
            scores[i], moved[i] = -scores[i], rows[i]
        order = stable_order(scores)
        gain = 0.0
        for i in range(n):
            rows[i] = moved[order[i]]
            gain += -scores[order[i]] if i < left_size else scores[order[i]]
        if round_ == max_rounds - 1 or (round_ > 1 and gain <= previous * 1.0001):
            break
        previous = gain
        left_scale = np.float32(1.0 / left_size)
        right_scale = np.float32(-1.0 / (n - left_size))
        for i in range(n):
            _expect(indptr, indices, data, rows, i + _AHEAD)
            scale = left_scale if i < left_size else right_scale
            _add_row(indptr, indices, data, rows[i], scale, difference)
