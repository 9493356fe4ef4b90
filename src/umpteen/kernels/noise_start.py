"""The direction in which the means of some classes differ most."""

import numpy as np

from umpteen.kernels.compiling import inlined, kernel

_MOST_SQUARINGS, _RANK_ONE = 40, 1e-14


@inlined
def along_largest(means, roots):
    """Return each mean's component along the direction of the largest scatter.

    Mean i counts `roots[i]`^2 times. The direction's largest entry is positive. If there are fewer
    means than dimensions, the matrix is that of the products of means.
    """
    n, dim = means.shape
    few = n < dim
    size = n if few else dim
    matrix, direction = np.zeros((size, size)), np.zeros(dim)
    for i in range(n):
        if few:
            for j in range(n):
                for k in range(dim):
                    matrix[i, j] += roots[i] * roots[j] * means[i, k] * means[j, k]
        else:
            for j in range(dim):
                scaled = roots[i] * roots[i] * means[i, j]
                for k in range(dim):
                    matrix[j, k] += scaled * means[i, k]
    largest = dominant(matrix)
    for j in range(dim):
        if few:
            for i in range(n):
                direction[j] += largest[i] * roots[i] * means[i, j]
        else:
            direction[j] = largest[j]
    turn = 0
    for j in range(1, dim):
        if abs(direction[j]) > abs(direction[turn]):
            turn = j
    along = np.zeros(n)
    for i in range(n):
        for j in range(dim):
            along[i] += means[i, j] * (direction[j] if direction[turn] > 0 else -direction[j])
    return along


@kernel
def dominant(matrix):
    """Return the eigenvector of a positive semi-definite matrix's largest eigenvalue.

    The matrix is squared until it has rank one, which takes about ten products of O(size^3), or
    more if the second eigenvalue is close: the power 2^40 separates any two that differ by more
    than rounding.
    """
    size = len(matrix)
    power, square = matrix.copy(), np.empty((size, size))
    for _ in range(_MOST_SQUARINGS):
        trace, squares = 0.0, 0.0
        for i in range(size):
            trace += power[i, i]
        if trace <= 0:
            break
        for i in range(size):
            for j in range(size):
                power[i, j] /= trace
                squares += power[i, j] * power[i, j]
        if squares > 1 - _RANK_ONE:
            break
        for i in range(size):
            for j in range(size):
                square[i, j] = 0.0
            for k in range(size):
                factor = power[i, k]
                for j in range(size):
                    square[i, j] += factor * power[k, j]
        power, square = square, power
    column = 0
    for j in range(1, size):
        if power[j, j] > power[column, column]:
            column = j
    vector = np.zeros(size)
    for j in range(size):
        vector[j] = power[column, j]
    return vector
