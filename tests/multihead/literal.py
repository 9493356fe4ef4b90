"""The paper's algorithms, line by line and sample by sample, with their errors put right."""

import itertools
import math

import numpy as np


def decompose(label, lengths):
    """Algorithm 1: floor division for "mod", the loop to the last but one head, a list."""
    local = []
    for h in range(len(lengths) - 1):
        behind = math.prod(lengths[h + 1 :])
        here = label // behind
        label -= behind * here
        local.append(here)
    return [*local, label]


def combine(local, lengths):
    """Eq. 11."""
    return sum(digit * math.prod(lengths[h + 1 :]) for h, digit in enumerate(local))


def confusion_degree(lengths):
    """Eq. 15, with its largest over all arrangements."""
    degrees = []
    for heads in itertools.permutations(lengths):
        factors = [math.prod(heads[h:]) / heads[h - 1] for h in range(1, len(heads))]
        degrees.append(math.prod(factors))
    return max(degrees)


def kronecker(heads):
    """The outputs of all codes of one sample."""
    result = np.ones(1)
    for outputs in heads:
        result = np.kron(result, outputs)
    return result


def product_bce(outputs, local, lengths):
    """Algorithm 2's loss of one sample: BCE of the sigmoids against concatenated one-hots."""
    hot = np.concatenate([np.eye(n)[digit] for n, digit in zip(lengths, local, strict=True)])
    p = 1 / (1 + np.exp(-outputs))
    return -np.mean(hot * np.log(p) + (1 - hot) * np.log(1 - p))


def best(scores, labels, k):
    """Best first, equal scores by label, -1 / -inf where fewer."""
    pairs = sorted(zip(-np.asarray(scores), labels, strict=True))[:k]
    pairs += [(np.inf, -1)] * (k - len(pairs))
    return [int(label) for _, label in pairs], [-float(score) for score, _ in pairs]


def cascade_candidates(outputs, true_groups, k):
    """Lines 2 to 5 of Algorithm 3, with the sigmoid: the groups that are looked into."""
    scores = 1 / (1 + np.exp(-outputs))
    scores[list(true_groups)] += 2
    return set(np.argsort(-scores, kind="stable")[: max(k, len(true_groups))].tolist())


def fast_sampling(features, table, labels, group_size):
    """Algorithm 4's FastSampling, with the target position * group_size + local."""
    n_labels = len(table)
    heads, local = labels // group_size, labels % group_size
    unique = np.unique(heads)
    positions = np.searchsorted(unique, heads)
    rows = [r for g in unique for r in range(g * group_size, min((g + 1) * group_size, n_labels))]
    return features @ table[rows].T, positions * group_size + local


def cross_entropy(logits, target):
    return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[target])
