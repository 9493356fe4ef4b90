"""The answers of several classifiers, joined into one list of candidates for each sample."""

import numpy as np

from umpteen.kernels.compiling import inlined, kernel


@inlined
def _sort_distinct(labels, n):
    """Sort the first `n` labels, and keep each once; returns how many are left, -1 after them."""
    for last in range(1, n):  # a few dozen: insertion is enough
        label = labels[last]
        place = last
        while place > 0 and labels[place - 1] > label:
            labels[place] = labels[place - 1]
            place -= 1
        labels[place] = label
    kept = 0
    for place in range(n):
        if kept == 0 or labels[place] != labels[kept - 1]:
            labels[kept] = labels[place]
            kept += 1
    for place in range(kept, n):
        labels[place] = -1
    return kept


@inlined
def _find(labels, n, label):
    first, last = 0, n
    while first < last:
        middle = (first + last) >> 1
        if labels[middle] < label:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def join_answers(labels, scores):
    """Return candidates of answers `(members, n, k)`, and each member's features of them.

    Returns the labels `(n, members * k)` in the order of their ids, filled up with -1, and
    `(n, members * k, 3 * members)`: for each member the label's score, how far it is below the
    sample's best, and 1 / rank. A label that a member does not offer has the member's lowest score
    for this sample, and 0 for 1 / rank. Costs a sort of the candidates per sample.
    """
    n_members, n, k = labels.shape
    candidates = np.full((n, n_members * k), -1, np.int32)
    evidence = np.zeros((n, n_members * k, 3 * n_members), np.float32)
    for row in range(n):
        n_found = 0
        for member in range(n_members):
            for rank in range(k):
                if labels[member, row, rank] >= 0:
                    candidates[row, n_found] = labels[member, row, rank]
                    n_found += 1
        n_found = _sort_distinct(candidates[row], n_found)
        for member in range(n_members):
            n_offered = 0
            while n_offered < k and labels[member, row, n_offered] >= 0:
                n_offered += 1
            best = lowest = np.float32(0)
            if n_offered > 0:
                best = scores[member, row, 0]
                lowest = scores[member, row, n_offered - 1]
            for place in range(n_found):
                evidence[row, place, 3 * member] = lowest
                evidence[row, place, 3 * member + 1] = lowest - best
            for rank in range(n_offered):
                place = _find(candidates[row], n_found, labels[member, row, rank])
                evidence[row, place, 3 * member] = scores[member, row, rank]
                evidence[row, place, 3 * member + 1] = scores[member, row, rank] - best
                evidence[row, place, 3 * member + 2] = np.float32(1) / np.float32(rank + 1)
    return candidates, evidence
