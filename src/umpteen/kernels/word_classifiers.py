"""A linear classifier of each label by dual coordinate descent, on negatives of its own."""

import numpy as np

from umpteen.kernels.compiling import inlined, kernel
from umpteen.kernels.coordinate_descent import first_state, shuffle

_LAZINESS = 0.25  # of the tolerance: smaller violations wait for the next full pass


@kernel
def train_word_classifiers(
    indptr, indices, data, squares, own_indptr, own, hard_indptr, hard, order, first, last,
    n_random, per_own, cost, tolerance, max_epochs, prune,
):  # fmt: skip
    """Return weights and biases of the labels `first:last`, each trained on samples of its own.

    Label l has the rows `own[own_indptr[l]:own_indptr[l + 1]]`, and those of `hard` are its hard
    negatives. `order` has all rows that are samples, and rows after these belong to one label each,
    such as its text. Of the other samples, the first ones in `order` are random negatives:
    `n_random`, or `per_own` for each of the label's rows if these are more; each counts for all
    that it stands for.
    A label minimises |w|^2 / 2 + cost * sum c_i max(0, 1 - y_i (w.x_i + b))^2, where b is the
    weight of one more feature that is always 1. `squares` (samples,) are the squared lengths of
    rows. The steps are those of Hsieh et al. (2008), as in `squared_hinge`. Weights below `prune`
    are left out. Returns where each label's weights begin, their features in any order, the
    weights, and the biases: -1 for a label without samples.
    """
    n_rows, n_features = len(squares), 0
    for entry in range(len(indices)):
        n_features = max(n_features, indices[entry] + 1)
    weights = np.zeros(n_features + 1)
    taken = np.zeros(n_rows, np.bool_)
    rows, alphas = np.empty(n_rows, np.int64), np.empty(n_rows)
    queue = np.empty(n_rows, np.int64)
    begins = np.zeros(last - first + 1, np.int64)
    biases = np.full(last - first, -1, np.float32)
    features, values = np.empty(1024, np.int32), np.empty(1024, np.float32)
    n_kept = 0
    for label in range(first, last):
        n_own = own_indptr[label + 1] - own_indptr[label]
        if n_own > 0:
            n, n_each, each = _choose(
                own[own_indptr[label] : own_indptr[label + 1]],
                hard[hard_indptr[label] : hard_indptr[label + 1]],
                order, max(n_random, per_own * n_own), taken, rows,
            )  # fmt: skip
            _descend(
                indptr, indices, data, squares, rows, n_own, n_each, n, cost, each * cost,
                tolerance, max_epochs, label, alphas, queue, weights,
            )  # fmt: skip
            biases[label - first] = weights[n_features]
            weights[n_features] = 0
            for place in range(n):
                for entry in range(indptr[rows[place]], indptr[rows[place] + 1]):
                    feature = indices[entry]
                    weight = weights[feature]
                    weights[feature] = 0
                    if abs(weight) >= prune and weight != 0:
                        if n_kept == len(features):
                            features = np.concatenate((features, np.empty_like(features)))
                            values = np.concatenate((values, np.empty_like(values)))
                        features[n_kept], values[n_kept] = feature, weight
                        n_kept += 1
        begins[label - first + 1] = n_kept
    return begins, features[:n_kept].copy(), values[:n_kept].copy(), biases


@inlined
def _choose(own, hard, order, n_random, taken, rows):
    """Fill `rows` with a label's samples, hard negatives and random ones.

    Returns how many there are, how many of them are not random, and for how many samples each
    random one stands. `taken` is False before and after.
    """
    n, n_samples = 0, 0
    for place in range(len(own)):
        rows[n] = own[place]
        taken[own[place]] = True
        n_samples += own[place] < len(order)
        n += 1
    for place in range(len(hard)):
        if not taken[hard[place]]:
            rows[n] = hard[place]
            taken[hard[place]] = True
            n_samples += 1
            n += 1
    n_each, rest = n, len(order) - n_samples
    most = min(n_random, rest)
    for place in range(len(order)):
        if n - n_each == most:
            break
        if not taken[order[place]]:
            rows[n] = order[place]
            n += 1
    for place in range(n_each):
        taken[rows[place]] = False
    return n, n_each, rest / max(1, most)


@inlined
def _descend(
    indptr, indices, data, squares, rows, n_own, n_each, n, cost, random_cost, tolerance,
    max_epochs, seed, alphas, queue, weights,
):  # fmt: skip
    """Train one label; `weights` are zero before, the last one is the bias.

    The first `n_own` of the `n` rows are positives, those from `n_each` on are random negatives.
    """
    bias = len(weights) - 1
    for place in range(n):
        alphas[place], queue[place] = 0, place
    n_active = n
    state = first_state(seed)
    for _ in range(max_epochs):
        everyone = n_active == n
        state = shuffle(queue, n_active, state)
        worst = 0.0
        position = 0
        while position < n_active:
            place = queue[position]
            row = rows[place]
            target = 1.0 if place < n_own else -1.0
            softness = 0.5 / (cost if place < n_each else random_cost)
            score = weights[bias]
            for entry in range(indptr[row], indptr[row + 1]):
                score += data[entry] * weights[indices[entry]]
            gradient = target * score - 1 + softness * alphas[place]
            curvature = squares[row] + 1 + softness
            new = max(alphas[place] - gradient / curvature, 0.0)
            change = new - alphas[place]
            violation = abs(change) * curvature
            if violation > _LAZINESS * tolerance:
                alphas[place] = new
                weights[bias] += change * target
                for entry in range(indptr[row], indptr[row + 1]):
                    weights[indices[entry]] += change * target * data[entry]
                worst = max(worst, violation)
                position += 1
            else:
                n_active -= 1
                queue[position], queue[n_active] = queue[n_active], queue[position]
        if worst <= tolerance:
            if everyone:
                break
            n_active = n
