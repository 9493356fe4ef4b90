"""The set of vectors whose sum is nearest, without looking at all sets."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def search_sets(
    costs, bases, vectors, pair_cost, least, size, keys, barred, most_steps, values, sets, proven
):
    """For each row, look for sets of `size` labels with a smaller value than `values` has.

    The value of a set is `bases[row]`, plus the `costs[row]` of its labels, plus `pair_cost` times
    the inner product of `vectors` for each pair of them; `least` is the smallest inner product
    of two different vectors. Where a set is better, `values[row]` and `sets[row]` (filled up
    with -1) are replaced by it. Sets whose labels' `keys` add up to a number in `barred`, which
    is sorted, are passed over.

    Exact branch and bound, depth first through the labels in order of cost: what a partial set
    can still become is bounded by the cheapest labels to come and `least` for each pair. After
    `most_steps` sums in a row, the best so far stays and `proven[row]` becomes False.
    """
    n_rows, n_labels = costs.shape
    n_pairs = size * (size - 1) // 2
    cheapest = np.empty(size)
    places = np.empty(size, np.int64)
    spent = np.empty(size + 1)
    if size > n_labels:
        return
    for row in range(n_rows):
        _cheapest(costs[row], cheapest)
        # No label can be part of a better set that is too dear with the cheapest company.
        limit = values[row] - bases[row] - n_pairs * pair_cost * least - cheapest[:-1].sum()
        labels = np.flatnonzero(costs[row] < limit)
        if len(labels) < size:
            continue
        labels = labels[np.argsort(costs[row][labels], kind="mergesort")]
        totals = np.zeros(len(labels) + 1)
        totals[1:] = np.cumsum(costs[row][labels])
        depth, steps = 0, 0
        places[0], spent[0] = 0, bases[row]
        while depth >= 0:
            place, missing = places[depth], size - depth
            pairs_to_come = n_pairs - depth * (depth - 1) // 2
            bound = np.inf
            if place + missing <= len(labels):
                bound = spent[depth] + totals[place + missing] - totals[place]
                bound += pairs_to_come * pair_cost * least
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
            elif value < values[row] and not _is_barred(labels, places, size, keys, barred):
                values[row] = value
                sets[row] = -1
                for each in range(size):
                    sets[row, each] = labels[places[each] - 1]


@njit(nogil=True, cache=True)
def _is_barred(labels, places, size, keys, barred):
    total = np.uint64(0)
    for each in range(size):
        total += keys[labels[places[each] - 1]]
    place = np.searchsorted(barred, total)
    return place < len(barred) and barred[place] == total


@njit(nogil=True, cache=True)
def _inner(vectors, first, second):
    total = 0.0
    for axis in range(vectors.shape[1]):
        total += vectors[first, axis] * vectors[second, axis]
    return total


@njit(nogil=True, cache=True)
def _cheapest(costs, cheapest):
    """The smallest costs in rising order, as many as there is room for."""
    cheapest[:] = np.inf
    last = len(cheapest) - 1
    for cost in costs:
        if cost < cheapest[last]:
            place = last
            while place > 0 and cheapest[place - 1] > cost:
                cheapest[place] = cheapest[place - 1]
                place -= 1
            cheapest[place] = cost
