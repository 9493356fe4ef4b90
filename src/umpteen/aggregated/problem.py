"""Samples, their groups and the groups' labels, checked and in the order that work needs."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.errors import FeaturesError
from umpteen.validation import (
    Features,
    as_csr,
    check_features,
    check_group_labels,
    check_groups,
    unit_rows,
)


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples, their groups, and how often each label occurs in each group.

    A group without samples cannot hand on its labels; it is left out.
    """

    features: Features  # (n, d), as given
    X: csr_matrix  # (n, d), rows of unit length
    groups: csr_matrix  # (n_groups, n)
    group_labels: csr_matrix  # (n_groups, n_labels)

    @classmethod
    def of(cls, X: Any, groups: Any, group_labels: Any) -> "Problem":
        """Return checked input; bad input raises an error of `umpteen.errors`."""
        features = check_features(X)
        if features.shape[0] == 0:
            raise FeaturesError("X has no rows: there are no samples whose labels could be found")
        members = check_groups(groups, n_samples=features.shape[0])
        counts = check_group_labels(group_labels, n_groups=members.shape[0])
        filled = np.flatnonzero(np.diff(members.indptr))
        if len(filled) < members.shape[0]:
            members, counts = members[filled], counts[filled]
        return cls(features, as_csr(unit_rows(features)), members, counts)

    @property
    def n_groups(self) -> int:
        """Return the number of groups that have samples."""
        return int(self.groups.shape[0])

    @property
    def n_labels(self) -> int:
        """Return the number of labels."""
        return int(self.group_labels.shape[1])

    @property
    def labels_per_sample(self) -> float:
        """Return the mean labels per sample, if each count stands for one sample."""
        return float(self.group_labels.sum() / max(1, self.groups.nnz))

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

    def worth_learning(self, assigned: csr_matrix) -> npt.NDArray[np.int64]:
        """Return the samples that have a label, or surely have none: no group of theirs has."""
        surely_none = np.diff(self.candidates.indptr) == 0
        return np.flatnonzero(surely_none | (np.diff(assigned.indptr) > 0))

    def sizes(self) -> npt.NDArray[np.int32]:
        """Return the number of samples of each group."""
        return np.diff(self.groups.indptr)
