"""Samples, their groups and the groups' labels, checked and in the order that work needs."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import scratch
from umpteen.errors import FeaturesError, GroupsError
from umpteen.validation import (
    Features,
    as_csr,
    check_features,
    check_group_labels,
    check_groups,
)

_HALVINGS = 50  # of the interval that a probability is in


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples, their groups, and how often each label occurs in each group.

    Groups without samples are left out; one that has labels is refused.
    """

    features: Features  # (n, d), as given
    X: csr_matrix  # (n, d), rows of unit length
    groups: csr_matrix  # (n_groups, n)
    group_labels: csr_matrix  # (n_groups, n_labels)
    given: npt.NDArray[np.intp]  # (n_groups,), the number of each group as it was given

    @classmethod
    def of(
        cls, X: Any, groups: Any, group_labels: Any, *, n_labels: int | None = None
    ) -> "Problem":
        """Return checked input; bad input raises an error of `umpteen.errors`."""
        features = check_features(X)
        if features.shape[0] == 0:
            raise FeaturesError("X has no rows: there are no samples whose labels could be found")
        members = check_groups(groups, n_samples=features.shape[0])
        counts = check_group_labels(group_labels, n_groups=members.shape[0], n_labels=n_labels)
        filled = np.flatnonzero(np.diff(members.indptr))
        if len(filled) < members.shape[0]:
            _check_empty_groups(np.diff(members.indptr), np.diff(counts.indptr))
            members, counts = members[filled], counts[filled]
        return cls(features, as_csr(scratch.unit_rows(features)), members, counts, filled)

    @property
    def n_groups(self) -> int:
        """Return the number of groups that have samples."""
        return int(self.groups.shape[0])

    @property
    def n_labels(self) -> int:
        """Return the number of labels."""
        return int(self.group_labels.shape[1])

    @cached_property
    def label_groups(self) -> csr_matrix:
        """Return the groups of each label with its counts, `(n_labels, n_groups)`."""
        return csr_matrix(self.group_labels.T.tocsr())

    @cached_property
    def candidates(self) -> csr_matrix:
        """Return the labels that each sample may have, those of its groups, `(n, n_labels)`.

        Values are the counts, added up over a sample's groups.
        """
        pairs = csr_matrix(self.groups.T.tocsr() @ self.group_labels)
        pairs.sort_indices()
        return pairs

    @property
    def everything(self) -> csr_matrix:
        """Return all labels of its groups for each sample: the paper's Baseline."""
        ones = np.ones(self.candidates.nnz, np.float32)
        shape, candidates = self.candidates.shape, self.candidates
        return csr_matrix((ones, candidates.indices, candidates.indptr), shape=shape)

    def without_counts(self) -> "Problem":
        """Return the same problem where it is only known which labels occur in a group."""
        labels = self.group_labels.copy()
        labels.data[:] = 1
        return replace(self, group_labels=labels)

    @cached_property
    def probabilities(self) -> npt.NDArray[np.float64]:
        """Return the share of samples that have each label, from the groups that have it.

        If samples had a label independently with probability p, it would be in 1 - (1 - p)^g of
        the groups of g samples. The p of a label is the one for which that adds up, over all
        groups with their own sizes, to the number of groups that have it (to half a group less
        than all of them, if all have it). Where similar samples form groups it is too low.
        """
        sizes, n_groups = np.unique(self.sizes(), return_counts=True)
        present = np.bincount(self.group_labels.indices, minlength=self.n_labels)
        present = np.minimum(present, self.n_groups - 0.5)
        low, high = np.zeros(self.n_labels), np.ones(self.n_labels)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            too_low = groups_with(middle, sizes, n_groups) < present
            low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
        return (low + high) / 2

    def n_answers(self, samples_per_label: str) -> int:
        """Return how many labels a sample has on average, at least one."""
        if samples_per_label == "estimate":
            return max(1, round(float(self.probabilities.sum())))
        labels = self.group_labels
        sizes = np.repeat(self.sizes(), np.diff(labels.indptr))  # no count is larger
        total = np.minimum(labels.data, sizes).sum(dtype=np.float64)
        return max(1, round(float(total / max(1, self.groups.nnz))))

    def worth_learning(self, assigned: csr_matrix) -> npt.NDArray[np.int64]:
        """Return the samples that have a label, or surely have none: no group of theirs has."""
        surely_none = np.diff(self.candidates.indptr) == 0
        return np.flatnonzero(surely_none | (np.diff(assigned.indptr) > 0))

    def sizes(self) -> npt.NDArray[np.int32]:
        """Return the number of samples of each group."""
        return np.diff(self.groups.indptr)


def groups_with(
    p: npt.NDArray[np.float64], sizes: npt.NDArray[np.int32], n: npt.NDArray[np.intp]
) -> npt.NDArray[np.float64]:
    """Return how many groups, `n` of each size, have a label of probability `p` at least once."""
    total = np.zeros_like(p)
    for size, n_groups in zip(sizes.tolist(), n.tolist(), strict=True):
        total += n_groups * (1 - (1 - p) ** size)
    return total


def _check_empty_groups(n_samples: npt.NDArray[np.int32], n_labels: npt.NDArray[np.int32]) -> None:
    wrong = np.flatnonzero((n_samples == 0) & (n_labels > 0))
    if len(wrong):
        raise GroupsError(
            f"group {wrong[0]} has {n_labels[wrong[0]]} labels but no samples ({len(wrong):,} such "
            "groups in all): no sample can have these labels. Leave out such groups, or check that "
            "the rows of groups and group_labels are in the same order"
        )
