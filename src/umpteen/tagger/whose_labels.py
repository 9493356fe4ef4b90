"""Whose label is it? The probability of each text of a group, given that the group has it."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_SMALL = 1e-9  # probabilities nearer to 0 or 1 are not told apart


@dataclass(frozen=True, eq=False)
class Claims:
    """Texts that may have a label of their group: each is a claim to a pair of group and label.

    With `exact`, a group's label belongs to exactly as many texts as its count; otherwise to one
    or more of them.
    """

    pair: IntArray  # of each claim; -1 for one to a label that its group does not have
    counts: FloatArray  # of each pair
    exact: bool

    @classmethod
    def of(cls, groups: IntArray, labels: IntArray, group_labels: csr_matrix, exact: bool) -> Self:
        """Return the claims of texts, by the `groups` that they are in, to `labels` (-1: none)."""
        n_labels = group_labels.shape[1]
        rows = np.repeat(np.arange(group_labels.shape[0]), np.diff(group_labels.indptr))
        keys = rows * n_labels + group_labels.indices.astype(np.int64)
        wanted = groups * n_labels + labels
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        is_labelled = (
            (labels >= 0) & (keys[place] == wanted) if len(keys) else np.zeros(len(labels), bool)
        )
        return cls(np.where(is_labelled, place, -1), group_labels.data.astype(np.float64), exact)

    def total(self, values: FloatArray) -> FloatArray:
        """Return the sum of the claims' values, for each pair."""
        given = self.pair >= 0
        found = np.bincount(self.pair[given], values[given], minlength=len(self.counts))
        return found.astype(np.float64)

    def occurs(self, p: FloatArray) -> FloatArray:
        """Return each pair's probability that any text has the label, by noisy-or."""
        return -np.expm1(self.total(np.log1p(-np.clip(p, 0, 1 - _SMALL))))

    def shares(self, p: FloatArray) -> FloatArray:
        """Return the probability of each claim, given the label of the group.

        `p` is what it would be without: claims are independent then. A claim to a label that its
        group does not have gets 0.
        """
        given = self.pair >= 0
        p = np.where(given, np.clip(p, _SMALL, 1 - _SMALL), 0.0)
        found = self._as_many_as_counted(p) if self.exact else p / self._of_pair(self.occurs(p))
        return np.where(given, np.minimum(found, 1.0), 0.0)

    def _as_many_as_counted(self, p: FloatArray) -> FloatArray:
        """Inclusion probabilities of a conditional Bernoulli model (Chen, Dempster and Liu 1994).

        With odds w, they are n w (1 - before) / sum of w (1 - before) for n texts, where `before`
        are those for n - 1 texts.
        """
        odds = p / (1 - p)
        n_claims = np.bincount(self.pair[self.pair >= 0], minlength=len(self.counts))
        counts = self._of_pair(np.minimum(self.counts, n_claims))
        is_everyone = counts >= self._of_pair(n_claims.astype(np.float64))
        found, left = np.zeros_like(p), np.flatnonzero((self.pair >= 0) & ~is_everyone)
        for n in range(1, int(counts[left].max(initial=0)) + 1):
            if n & (n - 1) == 0:  # at 1, 2, 4, ...: go on without claims that are done
                left = left[counts[left] >= n]
                _, place = np.unique(self.pair[left], return_inverse=True)
            weights = odds[left] * np.maximum(1 - found[left], 0)
            total = np.maximum(np.bincount(place, weights)[place], np.finfo(np.float64).tiny)
            more = np.minimum(n * weights / total, 1.0)
            found[left] = np.where(counts[left] >= n, more, found[left])
        return np.where(is_everyone, 1.0, found)

    def _of_pair(self, values: FloatArray) -> FloatArray:
        """The value of each claim's pair; 1 for claims to no pair."""
        return np.append(values, 1.0)[self.pair]
