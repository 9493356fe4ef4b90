"""Whose label is it? The probability of each text of a group, given that the group has it."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.special import expit, logit

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_SMALL = 1e-9  # probabilities nearer to 0 or 1 are not told apart
_WIDEST = -np.log(_SMALL)  # of logits
_RECURSION = 16  # largest count that the recursion takes


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

        If more than half of the texts have the label, those that do not have it are counted. The
        recursion loses its digits with large counts, which are close to a normal distribution:
        there, the odds of all texts are multiplied by the number that makes probabilities sum up
        to the count. That leaves the model as it is, and is off by less than 0.01.
        """
        n_claims = self._of_pair(self.total(np.ones(len(p))))
        counts = np.minimum(self._of_pair(self.counts), n_claims)
        is_most = 2 * counts > n_claims
        counts = np.where(is_most, n_claims - counts, counts)
        logits = logit(np.clip(p, _SMALL, 1 - _SMALL)) * np.where(is_most, -1, 1)
        found, is_large = np.zeros_like(p), (self.pair >= 0) & (counts > _RECURSION)
        few = np.flatnonzero((self.pair >= 0) & ~is_large)
        many = np.flatnonzero(is_large)
        found[few] = _recursion(self.pair[few], np.exp(logits[few]), counts[few])
        found[many] = _tilted(self.pair[many], logits[many], counts[many])
        return np.where(is_most, 1 - found, found)

    def _of_pair(self, values: FloatArray) -> FloatArray:
        """The value of each claim's pair; 1 for claims to no pair."""
        return np.append(values, 1.0)[self.pair]


def _recursion(pair: IntArray, odds: FloatArray, counts: FloatArray) -> FloatArray:
    """n w (1 - before) / sum of w (1 - before) for n texts with odds w; `before`: for n - 1."""
    found, left = np.zeros_like(odds), np.arange(len(odds))
    for n in range(1, int(counts.max(initial=0)) + 1):
        left = left[counts[left] >= n]
        _, place = np.unique(pair[left], return_inverse=True)
        weights = odds[left] * np.maximum(1 - found[left], 0)
        total = np.maximum(np.bincount(place, weights)[place], np.finfo(np.float64).tiny)
        found[left] = np.minimum(n * weights / total, 1.0)
    return found


def _tilted(pair: IntArray, logits: FloatArray, counts: FloatArray) -> FloatArray:
    """Probabilities that sum up to the count of each pair: logits and a number for each pair."""
    _, first, place = np.unique(pair, return_index=True, return_inverse=True)
    low, high = np.full(len(first), -2 * _WIDEST), np.full(len(first), 2 * _WIDEST)
    for _ in range(60):  # bisection
        middle = (low + high) / 2
        is_low = np.bincount(place, expit(logits + middle[place])) < counts[first]
        low, high = np.where(is_low, middle, low), np.where(is_low, high, middle)
    return np.asarray(expit(logits + low[place]), np.float64)
