"""Linear classifiers by dual coordinate descent, sixteen at a time.

Sixteen binary problems share the same samples and differ in their targets. Visiting a sample
once serves all sixteen: the weights of one feature are one 64-byte row. The steps of each lane
are those of Hsieh et al. (2008) for the hinge, and of Yu, Huang and Lin (2011) for the logistic
loss.
"""

import numpy as np

from umpteen.kernels import simd
from umpteen.kernels.compiling import inlined

_LAZINESS = np.float32(0.25)  # of the tolerance: smaller violations wait for the next full pass
_AHEAD = 2  # visits from reading weights to using them; a sample itself is read thrice as early
_CACHE = 2**20  # bytes; a problem of that size is read ahead


@inlined
def _scores(indptr, indices, data, row, weights):
    total = simd.spread(np.float32(0))
    for entry in range(indptr[row], indptr[row + 1]):
        total = simd.add_scaled(total, data[entry], simd.load(weights, indices[entry]))
    return total


@inlined
def _expect_row(indptr, indices, data, row, targets, alphas):
    """Start to read what belongs to a row."""
    simd.prefetch(targets, row * simd.WIDTH)
    simd.prefetch(alphas, row * simd.WIDTH)
    for entry in range(indptr[row], indptr[row + 1], simd.WIDTH):
        simd.prefetch(indices, entry)
        simd.prefetch(data, entry)


@inlined
def _expect_weights(indptr, indices, row, weights):
    """Start to read the weights of a row's features."""
    for entry in range(indptr[row], indptr[row + 1]):
        simd.prefetch(weights, indices[entry] * simd.WIDTH)


@inlined
def _add_row(indptr, indices, data, row, step, weights):
    for entry in range(indptr[row], indptr[row + 1]):
        feature = indices[entry]
        simd.store(
            weights, feature, simd.add_scaled(simd.load(weights, feature), data[entry], step)
        )


@inlined
def first_state(seed):
    """Return the state of the xorshift generator for a seed; never zero in practice."""
    return np.uint64(seed) * np.uint64(2654435769) + np.uint64(88172645463325252)


@inlined
def shuffle(values, n, state):
    """Permute the first `n` values in place; returns the next state of the xorshift generator."""
    for last in range(n - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        other = np.int64(state % np.uint64(last + 1))
        values[last], values[other] = values[other], values[last]
    return state


@inlined
def _rows(n):
    order = np.empty(n, np.int64)
    for row in range(n):
        order[row] = row
    return order


@inlined
def _square_norms(indptr, data):
    squares = np.zeros(len(indptr) - 1, np.float32)
    for row in range(len(squares)):
        for entry in range(indptr[row], indptr[row + 1]):
            squares[row] += data[entry] * data[entry]
    return squares


@inlined
def squared_hinge(
    indptr, indices, data, targets, first, n, cost, positive_weight, tolerance, max_epochs, seed,
    alphas, weights,
):  # fmt: skip
    """Minimise |w|^2 / 2 + sum c_i max(0, 1 - y_i w.x_i)^2 for sixteen targets at once.

    The sum is over the first `n` samples. `targets` (samples, 16) holds +1 / -1; c is `cost`, times
    `positive_weight` where y is +1. The multipliers `alphas` (samples, 16) and `weights`
    (features, 16) start at zero, or where an earlier call left them that had the samples before
    `first`: then the others are visited until they fit in, before all are. Samples whose projected
    gradients are well below `tolerance` in all lanes are set aside until the rest has converged
    (shrinking, in a form that also works where few multipliers are at their bound); the end is
    a full pass without a violation, or `max_epochs` times the samples. The next samples are either
    the next in order or, where one was set aside, the last; as their order is random, both are
    read ahead if they do not fit the cache, which halves the time. Costs sixteen multiplications
    per stored value and visit, twice that if the weights change. Returns the number of visits.
    """
    squares = _square_norms(indptr, data)
    soft = np.float32(0.5 / cost)
    softer = np.float32(0.5 / (cost * positive_weight)) - soft  # what positives add to `soft`
    zero = simd.spread(np.float32(0))
    half = simd.spread(np.float32(0.5))
    one = simd.spread(np.float32(1))
    order = np.empty(n, np.int64)
    for row in range(first, n):
        order[row - first] = row
    for row in range(first):
        order[n - first + row] = row
    n_active, n_all = n - first, n
    state = first_state(seed)
    visits = 0
    is_large = 8 * len(indices) + 4 * simd.WIDTH * (len(weights) + 2 * n) > _CACHE
    while visits < max_epochs * n:
        everyone = n_active == n_all
        state = shuffle(order, n_active, state)
        worst = np.float32(0)
        position = 0
        while position < n_active:
            row = order[position]
            visits += 1
            target = simd.load(targets, row)
            alpha = simd.load(alphas, row)
            positive = simd.add_scaled(half, np.float32(0.5), target)  # 1 / 0
            softness = simd.add_scaled(simd.spread(soft), softer, positive)
            score = _scores(indptr, indices, data, row, weights)
            gradient = simd.subtract(simd.multiply(target, score), one)
            gradient = simd.add(gradient, simd.multiply(softness, alpha))
            curvature = simd.add(softness, simd.spread(squares[row]))
            new = simd.maximum(simd.subtract(alpha, simd.divide(gradient, curvature)), zero)
            change = simd.subtract(new, alpha)
            violations = simd.multiply(change, curvature)
            violation = simd.largest(simd.maximum(violations, simd.subtract(zero, violations)))
            if violation > _LAZINESS * tolerance:
                if is_large:
                    later = order[min(position + 3 * _AHEAD, n_active - 1)]
                    _expect_row(indptr, indices, data, later, targets, alphas)
                    soon = order[min(position + _AHEAD, n_active - 1)]
                    _expect_weights(indptr, indices, soon, weights)
                simd.store(alphas, row, new)
                _add_row(indptr, indices, data, row, simd.multiply(change, target), weights)
                worst = max(worst, violation)
                position += 1
            else:
                n_active -= 1
                order[position], order[n_active] = order[n_active], order[position]
                if is_large:
                    later = order[max(n_active - 3 * _AHEAD, position)]
                    _expect_row(indptr, indices, data, later, targets, alphas)
                    soon = order[max(n_active - _AHEAD, position)]
                    _expect_weights(indptr, indices, soon, weights)
        if worst <= tolerance:
            if everyone:
                break
            n_active = n_all
    return visits


@inlined
def _logistic_step(alpha, slope, curvature, cost):
    """Minimiser over (0, cost) of the one-variable dual, by Newton on its smaller side.

    The dual part is a log a + (cost - a) log(cost - a) + curvature (a - alpha)^2 / 2
    + slope (a - alpha): Yu, Huang and Lin (2011), section 3.
    """
    mirrored = slope + curvature * (0.5 * cost - alpha) > 0
    centre = alpha if mirrored else cost - alpha
    slope = slope if mirrored else -slope
    value = min(max(centre, 1e-10 * cost), 0.5 * cost)
    for _ in range(20):
        gradient = curvature * (value - centre) + slope + np.log(value / (cost - value))
        if abs(gradient) < 1e-4:
            break
        newton = value - gradient / (curvature + cost / ((cost - value) * value))
        value = newton if newton > 0 else value * 0.1
    value = max(value, 1e-12 * cost)  # both ends stay apart in float64
    return value if mirrored else cost - value


@inlined
def logistic_regression(
    indptr, indices, data, targets, first, n, cost, positive_weight, tolerance, max_epochs, seed,
    alphas, weights,
):  # fmt: skip
    """Minimise |w|^2 / 2 + sum c_i log(1 + exp(-y_i w.x_i)) for sixteen targets at once.

    Arguments as in `squared_hinge`, but `alphas` in float64 and
    `first` has no effect; stops when no dual variable's
    gradient was above `tolerance` before its step. Each visit costs up to sixteen small Newton
    iterations on top.
    """
    squares = _square_norms(indptr, data)
    for row in range(n):
        for lane in range(simd.WIDTH):
            if alphas[row, lane] == 0:
                alphas[row, lane] = min(1e-3 * cost, 1e-8)
    scores = np.empty((1, simd.WIDTH), np.float32)
    steps = np.empty((1, simd.WIDTH), np.float32)
    order = _rows(n)
    state = first_state(seed)
    for _ in range(max_epochs):
        state = shuffle(order, n, state)
        worst = 0.0
        for row in order:
            simd.store(scores, 0, _scores(indptr, indices, data, row, weights))
            for lane in range(simd.WIDTH):
                target = targets[row, lane]
                limit = cost * positive_weight if target > 0 else cost
                alpha = alphas[row, lane]
                slope = np.float64(target * scores[0, lane])
                worst = max(worst, abs(slope + np.log(alpha / (limit - alpha))))
                new = _logistic_step(alpha, slope, squares[row], limit)
                steps[0, lane] = (new - alpha) * target
                alphas[row, lane] = new
            _add_row(indptr, indices, data, row, simd.load(steps, 0), weights)
        if worst <= tolerance:
            break
