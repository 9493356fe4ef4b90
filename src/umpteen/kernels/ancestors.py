"""Ancestors in a hierarchy of labels."""

import numpy as np

from umpteen.kernels.compiling import kernel


@kernel
def best_below(starts, labels, scores, parent_starts, parents):
    """Return all ancestors of each row's labels, and the best score among the labels below each.

    The labels of row i are `labels[starts[i]:starts[i + 1]]`, the best score first, so that the
    first label that leads to an ancestor is the best one. The direct parents of label j are
    `parents[parent_starts[j]:parent_starts[j + 1]]`. The result is where rows start, the ancestors
    in any order, and scores. Each link is followed at most once for each row.
    """
    n_labels = len(parent_starts) - 1
    seen = np.full(n_labels, -1, np.int64)  # the last row that led to a label
    stack = np.empty(1 + n_labels, np.int32)
    found = np.empty(16 + len(labels), np.int32)
    best = np.empty(len(found), np.float32)
    found_starts = np.zeros(len(starts), np.int64)
    n_found = 0
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            stack[0], height = labels[entry], 1
            while height > 0:
                height -= 1
                label = stack[height]
                for link in range(parent_starts[label], parent_starts[label + 1]):
                    parent = parents[link]
                    if seen[parent] == row:
                        continue
                    seen[parent] = row
                    stack[height] = parent
                    height += 1
                    if n_found == len(found):
                        more_found = np.empty(2 * n_found, np.int32)
                        more_best = np.empty(2 * n_found, np.float32)
                        for i in range(n_found):
                            more_found[i], more_best[i] = found[i], best[i]
                        found, best = more_found, more_best
                    found[n_found], best[n_found] = parent, scores[entry]
                    n_found += 1
        found_starts[row + 1] = n_found
    return found_starts, found[:n_found], best[:n_found]
