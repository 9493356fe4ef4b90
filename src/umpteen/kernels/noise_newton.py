"""Newton ascent on the logistic model of a node of the noise tree.

As log sigmoid(+-s) = +-s/2 - log(2 cosh(s/2)), the objective of a node (Eq. 8 with the regulariser)
is `target . theta + value(theta)`. `target` is half the sum of (z, 1) over the samples that go
right, less that of those that go left; `value` is -sum log(2 cosh(s/2)) - regularizer * |theta|^2,
where s = w.z + b, and does not depend on who goes right. `theta` is w with b as its last entry.
"""

import numpy as np

from umpteen.kernels.compiling import inlined, kernel

_MOST_STEPS = 100  # about five are taken
_MOST_HALVINGS = 40
_BLOCK = 8  # rows whose products are added to the Hessian at a time
_FACTORS = 512  # each from 1 to 2, so that their product does not overflow


@kernel
def ascend(rows, weight, target, theta, regularizer, tolerance, value, slope, hessian):
    """Ascend by Newton steps, each halved until it gains, while they gain enough.

    Enough is more than `tolerance` of the objective. `value`, `slope` and `hessian` are those of
    `evaluate` at `theta`. The value at the end is returned; the other two are updated in place.
    O(rows * dim^2) per step.
    """
    size = len(theta)
    gradient, moved, trial_slope = np.empty(size), np.empty(size), np.empty(size)
    trial_hessian, factor = np.empty((size, size)), np.empty((size, size))
    objective = value
    for j in range(size):
        objective += target[j] * theta[j]
    for _ in range(_MOST_STEPS):
        for j in range(size):
            gradient[j] = slope[j] + target[j]
        step, gain = solve(hessian, gradient, factor), 0.0
        for j in range(size):
            gain += step[j] * gradient[j]
        if gain <= 2 * tolerance * (1 + abs(objective)):
            break
        trial, reached = objective, value
        for _ in range(_MOST_HALVINGS):
            for j in range(size):
                moved[j] = theta[j] + step[j]
                step[j] *= 0.5
            reached = evaluate(rows, weight, moved, regularizer, trial_slope, trial_hessian)
            trial = reached
            for j in range(size):
                trial += target[j] * moved[j]
            if trial > objective:
                break
        if trial <= objective:
            break
        objective, value = trial, reached
        for j in range(size):
            theta[j], slope[j] = moved[j], trial_slope[j]
            for k in range(j, size):
                hessian[j, k] = trial_hessian[j, k]
    return value


@kernel
def evaluate(rows, weight, theta, regularizer, slope, hessian):
    """Return the value; fill its gradient and the upper half of its *negative* Hessian.

    Each row counts `weight` times.
    """
    dim = len(theta) - 1
    block, scaled = np.ones((_BLOCK, dim + 1)), np.empty((_BLOCK, dim + 1))
    for j in range(dim + 1):
        slope[j] = 0.0
        for k in range(j, dim + 1):
            hessian[j, k] = 0.0
    total, product = 0.0, 1.0
    for first in range(0, len(rows), _BLOCK):
        n_rows = min(_BLOCK, len(rows) - first)
        for i in range(n_rows):
            score, other = theta[dim], 0.0
            for j in range(0, dim - 1, 2):  # two sums: neither waits for the other
                block[i, j], block[i, j + 1] = rows[first + i, j], rows[first + i, j + 1]
                score += theta[j] * block[i, j]
                other += theta[j + 1] * block[i, j + 1]
            if dim % 2 == 1:
                block[i, dim - 1] = rows[first + i, dim - 1]
                other += theta[dim - 1] * block[i, dim - 1]
            score += other
            odds = np.exp(-abs(score))
            sure = 1 / (1 + odds)
            total += 0.5 * abs(score)
            product *= 1 + odds
            pull = (odds - 1) * sure * (0.5 if score > 0 else -0.5)
            curvature = odds * sure * sure
            for j in range(dim + 1):
                slope[j] += pull * block[i, j]
                scaled[i, j] = curvature * block[i, j]
        for i in range(n_rows, _BLOCK):
            for j in range(dim + 1):
                block[i, j] = scaled[i, j] = 0.0
        _add_products(hessian, scaled, block)
        if first % _FACTORS == 0:
            total += np.log(product)
            product = 1.0
    total += np.log(product)
    squares = 0.0
    for j in range(dim + 1):
        squares += theta[j] * theta[j]
        slope[j] = weight * slope[j] - 2 * regularizer * theta[j]
        for k in range(j, dim + 1):
            hessian[j, k] *= weight
        hessian[j, j] += 2 * regularizer
    return -weight * total - regularizer * squares


@inlined
def _add_products(hessian, left, right):
    """Add left^T right of eight rows to the upper half, in one pass over its numbers."""
    for j in range(len(hessian)):
        a, b, c, d = left[0, j], left[1, j], left[2, j], left[3, j]
        e, f, g, h = left[4, j], left[5, j], left[6, j], left[7, j]
        for k in range(j, len(hessian)):
            hessian[j, k] += (
                a * right[0, k] + b * right[1, k] + c * right[2, k] + d * right[3, k]
                + e * right[4, k] + f * right[5, k] + g * right[6, k] + h * right[7, k]
            )  # fmt: skip


@inlined
def solve(matrix, vector, reduced):
    """Return the solution for a positive definite matrix, given by its upper half.

    Elimination by hand: for so few rows a call of LAPACK takes longer than the work. `reduced` is
    room for as many numbers.
    """
    n = len(vector)
    solution = np.empty(n)
    for j in range(n):
        solution[j] = vector[j]
        for k in range(j, n):
            reduced[j, k] = matrix[j, k]
    for j in range(n):
        for i in range(j + 1, n):
            factor = reduced[j, i] / reduced[j, j]
            solution[i] -= factor * solution[j]
            for k in range(i, n):
                reduced[i, k] -= factor * reduced[j, k]
    for j in range(n - 1, -1, -1):
        for k in range(j + 1, n):
            solution[j] -= reduced[j, k] * solution[k]
        solution[j] /= reduced[j, j]
    return solution
