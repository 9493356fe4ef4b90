"""Combine what a tree found with what the labels' own features find."""

import numpy as np
from numba import njit

from umpteen.kernels.topk import best_first, offer


@njit(nogil=True, cache=True)
def blend(samples, labels, tree_labels, tree_scores, near_labels, near_cosines, weight, k, d):
    """The `k` best labels by `(tree + weight * cosine) / (1 + weight)`, one row after the other.

    `samples` and `labels` are CSR triples of unit rows with `d` features. The tree's candidates
    get their cosine here; near labels that the tree did not name count zero there.
    """
    indptr, indices, data = samples
    label_indptr, label_indices, label_data = labels
    n = len(indptr) - 1
    dense = np.zeros(d, np.float32)
    named = np.zeros(len(label_indptr) - 1, np.bool_)
    best = np.empty((n, k), np.int32)
    scores = np.empty((n, k), np.float32)
    scale = np.float32(1) / (np.float32(1) + weight)
    for i in range(n):
        for entry in range(indptr[i], indptr[i + 1]):
            dense[indices[entry]] = data[entry]
        kept = 0
        for slot in range(tree_labels.shape[1]):
            label = tree_labels[i, slot]
            if label < 0:
                break
            named[label] = True
            cosine = np.float32(0)
            for entry in range(label_indptr[label], label_indptr[label + 1]):
                cosine += label_data[entry] * dense[label_indices[entry]]
            cosine = min(max(cosine, np.float32(0)), np.float32(1))
            score = scale * (tree_scores[i, slot] + weight * cosine)
            kept = offer(best[i], scores[i], kept, label, score)
        for slot in range(near_labels.shape[1]):
            label = near_labels[i, slot]
            if label >= 0 and not named[label] and near_cosines[i, slot] > 0:
                cosine = min(near_cosines[i, slot], np.float32(1))
                kept = offer(best[i], scores[i], kept, label, scale * weight * cosine)
        best_first(best[i], scores[i], kept)
        for slot in range(tree_labels.shape[1]):
            if tree_labels[i, slot] >= 0:
                named[tree_labels[i, slot]] = False
        for entry in range(indptr[i], indptr[i + 1]):
            dense[indices[entry]] = 0
    return best, scores
