"""Combine what a tree found with what the labels' own features find."""

import numpy as np

from umpteen.kernels.compiling import kernel, shared
from umpteen.kernels.topk import best_first, offer

N_EVIDENCE, LOG_SCORE = 9, 1  # columns, and the one of the tree's log score
_LEAST_SCORE = np.float32(1e-4)
_ENTIRE = np.float32(0.999)  # share of a name


@shared
def _cosine(labels, label, dense):
    indptr, indices, data = labels
    total = np.float32(0)
    for entry in range(indptr[label], indptr[label + 1]):
        total += data[entry] * dense[indices[entry]]
    return min(max(total, np.float32(0)), np.float32(1))


@kernel
def join_evidence(
    samples, labels, names, name_starts, tree_labels, tree_scores, near_labels, log_counts,
    n_features,
):  # fmt: skip
    """Return the candidates of each row, -1 for none, and the evidence for each.

    Candidates are the tree's labels, then near ones that the tree does not name. The evidence is:
    the tree's score, its logarithm, its distance from the row's best, 1 / rank in the tree; the
    cosine of sample and label features, its distance from the best; the largest share of one of
    the label's names (rows `name_starts[label]` to before `name_starts[label + 1]` of `names`, unit
    rows) that the sample has; the number of features of the longest name that it has entirely; and
    the logarithm of the label's frequency.
    """
    indptr, indices, data = samples
    n, n_tree, n_near = len(indptr) - 1, tree_labels.shape[1], near_labels.shape[1]
    label_indptr, label_indices, label_data = labels
    name_indptr, name_indices, name_data = names
    dense = np.zeros(n_features, np.float32)
    named = np.zeros(len(label_indptr) - 1, np.bool_)
    candidates = np.full((n, n_tree + n_near), -1, np.int32)
    evidence = np.zeros((n, n_tree + n_near, N_EVIDENCE), np.float32)
    for i in range(n):
        for entry in range(indptr[i], indptr[i + 1]):
            dense[indices[entry]] = data[entry]
        best_score, best_cosine = np.float32(0), np.float32(0)
        for slot in range(n_tree + n_near):
            is_near = slot >= n_tree
            label = near_labels[i, slot - n_tree] if is_near else tree_labels[i, slot]
            if label < 0 or named[label]:
                continue
            named[label] = True
            score, inverse_rank = np.float32(0), np.float32(0)
            if not is_near:
                score, inverse_rank = tree_scores[i, slot], np.float32(1) / np.float32(1 + slot)
            cosine = np.float32(0)
            for entry in range(label_indptr[label], label_indptr[label + 1]):
                cosine += label_data[entry] * dense[label_indices[entry]]
            most, longest = np.float32(0), 0
            for name in range(name_starts[label], name_starts[label + 1]):
                covered = np.float32(0)
                for entry in range(name_indptr[name], name_indptr[name + 1]):
                    if dense[name_indices[entry]] != 0:
                        covered += name_data[entry] * name_data[entry]
                most = max(most, covered)
                if covered > _ENTIRE:
                    longest = max(longest, name_indptr[name + 1] - name_indptr[name])
            best_score, best_cosine = max(best_score, score), max(best_cosine, cosine)
            candidates[i, slot] = label
            found = evidence[i, slot]
            found[0], found[1], found[3] = score, np.log(score + _LEAST_SCORE), inverse_rank
            found[4], found[6], found[7] = cosine, most, np.float32(longest)
            found[8] = log_counts[label]
        for slot in range(n_tree + n_near):
            evidence[i, slot, 2] = evidence[i, slot, 0] - best_score
            evidence[i, slot, 5] = evidence[i, slot, 4] - best_cosine
            if candidates[i, slot] >= 0:
                named[candidates[i, slot]] = False
        for entry in range(indptr[i], indptr[i + 1]):
            dense[indices[entry]] = 0
    return candidates, evidence


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
                named[label] = True  # a label with several names is near more than once
                score = scale * weight * _cosine(labels, label, dense)
                if score > 0:
                    kept = offer(best[i], scores[i], kept, label, score)
        best_first(best[i], scores[i], kept)
        for slot in range(tree_labels.shape[1]):
            if tree_labels[i, slot] >= 0:
                named[tree_labels[i, slot]] = False
        for slot in range(near_labels.shape[1]):
            if near_labels[i, slot] >= 0:
                named[near_labels[i, slot]] = False
        for entry in range(indptr[i], indptr[i + 1]):
            dense[indices[entry]] = 0
    return best, scores
