"""Combine what a tree found with what the labels' own features find."""

import numpy as np

from umpteen.kernels.compiling import kernel, shared
from umpteen.kernels.topk import best_first, offer


@shared
def _cosine(labels, label, dense):
    indptr, indices, data = labels
    total = np.float32(0)
    for entry in range(indptr[label], indptr[label + 1]):
        total += data[entry] * dense[indices[entry]]
    return min(max(total, np.float32(0)), np.float32(1))


@kernel
def blend(samples, labels, tree_labels, tree_scores, near_labels, weight, k, n_features):
    """Return the `k` best labels by `(tree + weight * cosine) / (1 + weight)`, row by row.

    `samples` and `labels` are CSR triples of unit rows; candidates are the tree's labels and
    the near ones, which count zero in the tree unless it names them too.
    """
    indptr, indices, data = samples
    n = len(indptr) - 1
    dense = np.zeros(n_features, np.float32)
    named = np.zeros(len(labels[0]) - 1, np.bool_)
    best = np.empty((n, k), np.int32)
    scores = np.empty((n, k), np.float32)
    scale = np.float32(1) / (np.float32(1) + weight)
    for i in range(n):
        for entry in range(indptr[i], indptr[i + 1]):
            dense[indices[entry]] = data[entry]
        kept = 0
        for slot in range(tree_labels.shape[1]):
            label = tree_labels[i, slot]
            if label >= 0:
                named[label] = True
                score = scale * (tree_scores[i, slot] + weight * _cosine(labels, label, dense))
                kept = offer(best[i], scores[i], kept, label, score)
        for slot in range(near_labels.shape[1]):
            label = near_labels[i, slot]
            if label >= 0 and not named[label]:
                score = scale * weight * _cosine(labels, label, dense)
                if score > 0:
                    kept = offer(best[i], scores[i], kept, label, score)
        best_first(best[i], scores[i], kept)
        for slot in range(tree_labels.shape[1]):
            if tree_labels[i, slot] >= 0:
                named[tree_labels[i, slot]] = False
        for entry in range(indptr[i], indptr[i + 1]):
            dense[indices[entry]] = 0
    return best, scores
