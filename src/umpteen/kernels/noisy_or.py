"""How many samples of a group have a label, if one knows only which groups have it."""

import numpy as np
from numba import njit

_ITERATIONS = 25
_CONVERGED = 1e-3  # change of slope and bias
_CLOSE_TO_ZERO = 1e-9
_START = 2.0  # bias: where presence says nothing more, a score of 1 is a probability of 0.88
_WORST = 1e-3  # smallest share of a step that is tried


@njit(nogil=True, cache=True)
def _tables(slope, bias, grid, losses, chances):
    """Fill in -log(1 - p) and p for each level of scores, where p is logistic."""
    for level in range(len(grid)):
        score = slope * grid[level] + bias
        small = np.exp(-abs(score))
        losses[level] = max(score, 0.0) + np.log1p(small)
        chances[level] = (1.0 if score > 0 else small) / (1 + small)


@njit(nogil=True, cache=True)
def _evaluate(slope, bias, grid, levels, ends, absent, losses, chances, gradient, information):
    """Fill in gradient (2,) and Fisher information (2, 2); returns the loss."""
    _tables(slope, bias, grid, losses, chances)
    gradient[:] = 0
    information[:] = 0
    loss = 0.0
    for level in range(len(grid)):
        weight, p, u = absent[level], chances[level], grid[level]
        if weight > 0:
            loss += weight * losses[level]
            gradient[0] += weight * p * u
            gradient[1] += weight * p
            curve = weight * p * (1 - p)
            information[0, 0] += curve * u * u
            information[0, 1] += curve * u
            information[1, 1] += curve
    first = 0
    for last in ends:
        total, likely, by_score = 0.0, 0.0, 0.0
        for row in range(first, last):
            level = levels[row]
            total += losses[level]
            likely += chances[level]
            by_score += chances[level] * grid[level]
        present = max(-np.expm1(-total), _CLOSE_TO_ZERO)
        odds = np.exp(-total) / present
        loss -= np.log(present)
        gradient[0] -= odds * by_score
        gradient[1] -= odds * likely
        information[0, 0] += odds * by_score * by_score
        information[0, 1] += odds * by_score * likely
        information[1, 1] += odds * likely * likely
        first = last
    return loss


@njit(nogil=True, cache=True)
def _fit(grid, levels, ends, absent, ridge, losses, chances):
    """Slope and bias of the logistic curve under which presence and absence are most likely."""
    slope, bias, damping = 1.0, _START, 1e-3
    gradient, information = np.zeros(2), np.zeros((2, 2))
    new_gradient, new_information = np.zeros(2), np.zeros((2, 2))
    loss = _evaluate(
        slope, bias, grid, levels, ends, absent, losses, chances, gradient, information
    )
    for _ in range(_ITERATIONS):
        pull = gradient[0] + ridge * (slope - 1)
        a = information[0, 0] * (1 + damping) + ridge
        b, d = information[0, 1], information[1, 1] * (1 + damping) + 1e-6
        determinant = max(a * d - b * b, 1e-12)
        to_slope = max(0.0, slope - (d * pull - b * gradient[1]) / determinant)
        to_bias = bias - max(-3.0, min(3.0, (a * gradient[1] - b * pull) / determinant))
        new = _evaluate(
            to_slope, to_bias, grid, levels, ends, absent, losses, chances, new_gradient,
            new_information,
        )  # fmt: skip
        gain = loss - new + 0.5 * ridge * ((slope - 1) ** 2 - (to_slope - 1) ** 2)
        if gain < 0:
            damping *= 10
            if damping > 1 / _WORST:
                break
            continue
        moved = max(abs(to_slope - slope), abs(to_bias - bias))
        slope, bias, loss, damping = to_slope, to_bias, new, max(damping / 10, 1e-6)
        gradient[:] = new_gradient
        information[:] = new_information
        if moved < _CONVERGED:
            break
    _tables(slope, bias, grid, losses, chances)


@njit(nogil=True, cache=True)
def expected_counts(
    group_indptr, groups, member_indptr, members, own_indptr, own_samples, own_levels, other_indptr,
    other_levels, grid, ridge, level_of, found,
):  # fmt: skip
    """Fill in how many samples of each group can be expected to have each of the group's labels.

    Label `k` occurs in `groups[group_indptr[k]:group_indptr[k + 1]]`, and `found` has their order.
    The samples of these groups, `own_samples[own_indptr[k]:...]`, have scores of the levels
    `own_levels` of `grid`; samples of other groups, `other_levels[other_indptr[k]:...]`, stand for
    all that do not have the label. A sample has it with a probability p that is logistic in its
    score, and a group has it with 1 - prod (1 - p). The likelihood of presence and absence
    decides the curve (Fisher scoring, a penalty `ridge` on the squared distance of its slope
    from 1); where all groups have the label, half a group counts as one that does not. The
    expected number is the sum of p over the group's members, given that it is not 0. `level_of`
    (samples,) is room to work. Costs some 15 passes over the pairs of samples and labels.
    """
    n_samples, n_levels = len(level_of), len(grid)
    losses, chances = np.empty(n_levels), np.empty(n_levels)
    for label in range(len(group_indptr) - 1):
        own_groups = groups[group_indptr[label] : group_indptr[label + 1]]
        if len(own_groups) == 0:
            continue
        n_rows = 0
        for group in own_groups:
            n_rows += member_indptr[group + 1] - member_indptr[group]
        first, last = own_indptr[label], own_indptr[label + 1]
        for place in range(first, last):
            level_of[own_samples[place]] = own_levels[place]
        levels, ends = np.empty(n_rows, np.uint8), np.empty(len(own_groups), np.int64)
        row = 0
        absent = np.zeros(n_levels)
        for position in range(len(own_groups)):
            group = own_groups[position]
            for sample in members[member_indptr[group] : member_indptr[group + 1]]:
                levels[row] = level_of[sample]
                row += 1
            ends[position] = row
        n_absent, n_others = n_samples - (last - first), 0
        for place in range(other_indptr[label], other_indptr[label + 1]):
            absent[other_levels[place]] += 1
            n_others += 1
        if n_others > 0:
            absent *= n_absent / n_others
        else:
            for place in range(first, last):
                absent[own_levels[place]] += max(n_absent, 0.5 * n_rows / len(own_groups)) / (
                    last - first
                )
        _fit(grid, levels, ends, absent, ridge, losses, chances)
        row = 0
        for position in range(len(own_groups)):
            total, likely = 0.0, 0.0
            while row < ends[position]:
                total += losses[levels[row]]
                likely += chances[levels[row]]
                row += 1
            found[group_indptr[label] + position] = likely / max(-np.expm1(-total), _CLOSE_TO_ZERO)
