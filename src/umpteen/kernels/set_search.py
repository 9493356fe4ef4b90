"""The set of vectors whose sum is nearest, without looking at all sets."""

import numpy as np

from umpteen.kernels.compiling import inlined, kernel
from umpteen.kernels.sorting import stable_order


@kernel
def search_sets(
    rests, costs, vectors, scale, least, size, keys, barred, most_steps, values, sets, proven
):
    """Search each row for sets of `size` labels with a smaller value than `values` has.

    The value of a set is the squared distance of `rests[row]` from `scale` times the sum of its
    labels' `vectors`. That is the square of `rests[row]`, plus the `costs[row]` of its labels, plus
    2 scale^2 times the inner product of each pair of their vectors, of which `least` is the
    smallest. Where a set is better, `values[row]` and `sets[row]` (filled up with -1) are
    replaced by it. Sets whose labels' `keys` sum to a number in the sorted array `barred` are
    skipped.

    Exact branch and bound, depth first through the labels in order of cost: the value of any
    completion of a partial set is bounded from below by the cheapest labels to come and `least`
    for each pair. Such sums lose precision if vectors are long and distances short, so a bound
    must exceed the value by more than its rounding error, and the final value is computed from
    the differences. After `most_steps` steps for a row, the best set so far is kept and
    `proven[row]` becomes False.
    """
    n_rows, n_labels = costs.shape
    dim = vectors.shape[1]
    n_pairs = size * (size - 1) // 2
    pair_cost = 2 * scale * scale
    cheapest = np.empty(size)
    places = np.empty(size, np.int64)
    spent = np.empty(size + 1)
    if size > n_labels:
        return
    longest = 0.0
    for label in range(n_labels):
        longest = max(longest, _inner(vectors, label, label))
    longest = abs(scale) * size * np.sqrt(longest)
    for row in range(n_rows):
        base = _inner(rests, row, row)
        # At most so many roundings, of numbers at most so large.
        margin = 4 * (dim + size * size + 8) * 2.0**-53 * (np.sqrt(base) + longest) ** 2
        _cheapest(costs[row], cheapest)
        # No label can be part of a better set that is too dear with the cheapest company.
        company = 0.0
        for each in range(size - 1):
            company += cheapest[each]
        limit = values[row] + margin - base - n_pairs * pair_cost * least - company
        labels = _below(costs[row], limit)
        if len(labels) < size:
            continue
        depth, steps = 0, 0
        places[0], spent[0] = 0, base
        while depth >= 0:
            place, missing = places[depth], size - depth
            pairs_to_come = n_pairs - depth * (depth - 1) // 2
            bound = np.inf
            if place + missing <= len(labels):
                bound = spent[depth] + pairs_to_come * pair_cost * least - margin
                for each in range(place, place + missing):
                    bound += costs[row, labels[each]]
            if bound >= values[row]:
                depth -= 1
                continue
            if steps == most_steps:
                proven[row] = False
                break
            steps += 1
            label = labels[place]
            value = spent[depth] + costs[row, label]
            for earlier in range(depth):
                other = labels[places[earlier] - 1]
                value += pair_cost * _inner(vectors, label, other)
            places[depth] += 1
            if missing > 1:
                depth += 1
                places[depth], spent[depth] = place + 1, value
            elif value - margin < values[row] and not _is_barred(
                labels, places, size, keys, barred
            ):
                value = _distance(rests[row], vectors, scale, labels, places)
                if value < values[row]:
                    values[row] = value
                    for each in range(sets.shape[1]):
                        sets[row, each] = labels[places[each] - 1] if each < size else -1


@inlined
def _below(costs, limit):
    """Return the labels that cost less, cheapest first."""
    n = 0
    for label in range(len(costs)):
        n += costs[label] < limit
    labels, own, place = np.empty(n, np.int64), np.empty(n), 0
    for label in range(len(costs)):
        if costs[label] < limit:
            labels[place], own[place] = label, costs[label]
            place += 1
    order = stable_order(own)
    for place in range(n):
        order[place] = labels[order[place]]
    return order


@inlined
def _distance(rest, vectors, scale, labels, places):
    """Squared, from the sum of the vectors of the labels before `places`."""
    total = 0.0
    for axis in range(len(rest)):
        together = 0.0
        for place in places:
            together += vectors[labels[place - 1], axis]
        difference = rest[axis] - scale * together
        total += difference * difference
    return total


@inlined
def _is_barred(labels, places, size, keys, barred):
    total = np.uint64(0)
    for each in range(size):
        total += keys[labels[places[each] - 1]]
    low, high = 0, len(barred)
    while low < high:
        middle = (low + high) // 2
        if barred[middle] < total:
            low = middle + 1
        else:
            high = middle
    return low < len(barred) and barred[low] == total


@inlined
def _inner(vectors, first, second):
    total = 0.0
    for axis in range(vectors.shape[1]):
        total += vectors[first, axis] * vectors[second, axis]
    return total


@inlined
def _cheapest(costs, cheapest):
    """The smallest costs in rising order, as many as there is room for."""
    last = len(cheapest) - 1
    for place in range(last + 1):
        cheapest[place] = np.inf
    for cost in costs:
        if cost < cheapest[last]:
            place = last
            while place > 0 and cheapest[place - 1] > cost:
                cheapest[place] = cheapest[place - 1]
                place -= 1
            cheapest[place] = cost
