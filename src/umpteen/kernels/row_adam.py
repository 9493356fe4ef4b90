"""A step of Adam for the rows of a table that have a gradient, in one pass over these rows."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, no_cfunc_wrapper=True, error_model="numpy")
def move_rows(
    table, first, second, rows, order, values, begin, end, share, square_share, rate, eps
):
    """Update the rows of the table that are in the sorted `rows[begin:end]`, and their moments.

    The gradient of `rows[i]` is `values[order[i]]`; those of a row that is there several times are
    added up. A row belongs to the call in whose range it is first, so that several ranges may be
    updated at the same time. Costs one pass over each row of `table`, `first` and `second`.
    """
    width = table.shape[1]
    total = np.empty(width, np.float32)
    for i in range(begin, end):
        row = rows[i]
        if i > 0 and rows[i - 1] == row:
            continue
        place = order[i]
        for k in range(width):
            total[k] = values[place, k]
        again = i + 1
        while again < len(rows) and rows[again] == row:
            place = order[again]
            for k in range(width):
                total[k] += values[place, k]
            again += 1
        for k in range(width):
            gradient = total[k]
            mean = first[row, k] + share * (gradient - first[row, k])
            square = second[row, k] + square_share * (gradient * gradient - second[row, k])
            first[row, k], second[row, k] = mean, square
            table[row, k] -= rate * mean / (np.sqrt(square) + eps)
