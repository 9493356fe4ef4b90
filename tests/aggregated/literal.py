"""Algorithms 1 and 2 of EAGLE as they are printed, label by label, in float64; random problems."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

ALIKE = 1e-9  # values this close are the same but for rounding


class Small(NamedTuple):
    """A small problem: features, members of groups, counts of labels in groups."""

    X: np.ndarray  # (n, d)
    groups: np.ndarray  # (n_groups, n) of bool
    counts: np.ndarray  # (n_groups, n_labels)

    @property
    def sparse(self):
        return csr_matrix(self.X), csr_matrix(self.groups), csr_matrix(self.counts)


def random_problem(seed, *, overlap=True, signed=False, n=40, d=12, n_groups=9, n_labels=7):
    """Sparse features, an empty sample, an empty group, a group without labels, an idle label."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.6)
    if signed:
        X *= rng.choice([-1, 1], X.shape)
    X[3] = 0
    groups = np.zeros((n_groups, n), bool)
    groups[rng.integers(1, n_groups, n), np.arange(n)] = True  # group 0 stays empty
    if overlap:
        groups[1:] |= rng.random((n_groups - 1, n)) < 0.08
    counts = rng.integers(1, 4, (n_groups, n_labels)) * (rng.random((n_groups, n_labels)) < 0.4)
    counts[:, 0] = 0
    counts[2] = 0
    counts[1, 1:3] = 1
    counts = np.minimum(counts, groups.sum(axis=1)[:, None])
    if not counts.any():
        counts[groups.any(axis=1), 1] = 1
    return Small(X, groups, counts)


def unit(vector):
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector


def unit_rows(X, center=False):
    rows = np.array([unit(row) for row in np.asarray(X, np.float64)])
    return rows - rows.mean(axis=0) if center else rows


def embeddings(problem, iterations, step, center):
    """Algorithm 1; a label without samples has zeros."""
    X = unit_rows(problem.X, center)
    members = [np.flatnonzero(group) for group in problem.groups]
    found = np.zeros((problem.counts.shape[1], X.shape[1]))
    for label, weights in enumerate(problem.counts.T):
        own = [j for j in np.flatnonzero(weights) if len(members[j])]
        e = unit(sum((weights[j] * X[members[j]].sum(axis=0) for j in own), 0 * X[0]))
        for _ in range(iterations):
            closest = np.zeros_like(e)
            for j in own:
                values = X[members[j]] @ e
                winners = members[j][values >= values.max() - ALIKE]
                closest += weights[j] * X[winners].sum(axis=0)
            e = unit(e + step * unit(closest))
        found[label] = e
    return found


def similarities(problem, vectors, center):
    """(n, n_labels), of every sample to every label."""
    return unit_rows(problem.X, center) @ vectors.T


def handed_out(problem, scores, wanted):
    """Algorithm 2: each label of a group to so many best samples; equal ones by their number."""
    given = np.zeros(scores.shape)
    for members, counts in zip(problem.groups, problem.counts, strict=True):
        own = np.flatnonzero(members)
        for label in np.flatnonzero(counts):
            best = sorted(own, key=lambda sample: (-scores[sample, label], sample))
            for sample in best[: counts[label] if wanted == "count" else 1]:
                given[sample, label] = 1
    return given


def is_settled(problem, scores, wanted, margin=1e-5):
    """Whether no choice hangs on rounding: the last that is chosen is clearly before the next."""
    for members, counts in zip(problem.groups, problem.counts, strict=True):
        for label in np.flatnonzero(counts):
            values = -np.sort(-scores[members, label])
            n = counts[label] if wanted == "count" else 1
            if n < len(values) and values[n - 1] - values[n] < margin:
                return False
    return True
