"""Metrics that give credit to relatives, for labels with a hierarchy.

Kiritchenko, Matwin and Famili (2005): the answered labels and the relevant labels of a sample are
both extended by all their ancestors, and the extended sets are compared. An answer next to the
right label shares ancestors with it, and so is worth something.

As in the paper, values are averages over pairs of a sample and a label (micro): one ratio of sums
over all samples. Without anything to divide by, they are 0. `parents` has a row for each label that
marks its direct parents, as `LabelVocabulary.parents` returns it; a cycle is an error. A root that
all labels have in common is found in every answer: leave it out, or all values are too high.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from umpteen.errors import LabelsShapeError
from umpteen.kernels.ancestors import best_below
from umpteen.metrics.hits import find_hits
from umpteen.metrics.inputs import Ks, Value, at_each, widened, written_as_ids
from umpteen.metrics.ranking import ratio
from umpteen.validation import check_parents

_ROWS_PER_BLOCK = 1 << 16


def hierarchical_precision_at_k(Y: Any, top: Any, k: Ks, parents: Any) -> Value:
    """Return the share of the first `k` answers and their ancestors that are relevant.

    A label is relevant if it is in `Y` or an ancestor of such a label. Places without an answer do
    not count.

    >>> from umpteen import TopK
    >>> parents = [[], [0], [0], [2]]  # 1 and 2 are below 0, 3 is below 2
    >>> hierarchical_precision_at_k([[3]], TopK([[1]], [[0.9]]), 1, parents)  # of 1 and 0
    0.5
    """
    counts = _Counts(Y, top, k, parents)
    return at_each(k, lambda k: ratio(*counts.at(k)[:2]))


def hierarchical_recall_at_k(Y: Any, top: Any, k: Ks, parents: Any) -> Value:
    """Return the share of relevant labels and their ancestors that the first `k` answers find.

    A label is found if it is answered, or an ancestor of an answered label.

    >>> from umpteen import TopK
    >>> parents = [[], [0], [0], [2]]
    >>> hierarchical_recall_at_k([[3]], TopK([[2]], [[0.9]]), 1, parents)  # 2 and 0 of 3, 2 and 0
    0.6666666666666666
    """
    counts = _Counts(Y, top, k, parents)
    return at_each(k, lambda k: ratio(counts.at(k)[0], counts.n_relevant))


def hierarchical_f1_at_k(Y: Any, top: Any, k: Ks, parents: Any) -> Value:
    """Return the harmonic mean of hierarchical precision and recall at `k`.

    >>> from umpteen import TopK
    >>> parents = [[], [0], [0], [2]]
    >>> hierarchical_f1_at_k([[3]], TopK([[2]], [[0.9]]), 1, parents)
    0.8
    """
    counts = _Counts(Y, top, k, parents)
    return at_each(k, counts.f1)


class _Counts:
    """How many labels the extended sets of answers and of relevant labels have, and share."""

    def __init__(self, Y: Any, top: Any, k: Ks, parents: Any) -> None:
        self.parents = check_parents(parents)
        n_labels = self.parents.shape[0]
        self.hits = find_hits(Y, top, k, n_labels)
        width = self.hits.relevant.shape[1]
        if width > n_labels or (width < n_labels and not written_as_ids(Y)):
            raise LabelsShapeError(
                f"parents has a row for each of {n_labels:,} labels, but Y and the answers have "
                f"{width:,} labels; each label has its row, in the same order as in training"
            )
        self.relevant = with_all_ancestors(widened(self.hits.relevant, n_labels), self.parents)
        self.n_relevant = self.relevant.nnz

    def at(self, k: int) -> tuple[int, int]:
        """Count the labels in both extended sets, and in those of the answers."""
        labels = self.hits.labels[:, :k]
        given = labels >= 0
        n_labels = self.parents.shape[0]
        n_both = n_answered = 0
        for start in range(0, len(labels), _ROWS_PER_BLOCK):
            rows = slice(start, start + _ROWS_PER_BLOCK)
            indptr = np.concatenate([[0], np.cumsum(given[rows].sum(axis=1))])
            ids = labels[rows][given[rows]]
            ones = np.ones(len(ids), np.float32)
            answered = csr_matrix((ones, ids, indptr), shape=(len(indptr) - 1, n_labels))
            extended = with_all_ancestors(answered, self.parents)
            n_answered += extended.nnz
            n_both += extended.multiply(self.relevant[rows]).nnz
        return n_both, n_answered

    def f1(self, k: int) -> float:
        n_both, n_answered = self.at(k)
        return ratio(2 * n_both, n_answered + self.n_relevant)


def with_all_ancestors(sets: csr_matrix, parents: csr_matrix) -> csr_matrix:
    """Return sets of labels `(n, n_labels)` with all their ancestors, as CSR of ones.

    >>> with_all_ancestors(csr_matrix([[0, 0, 1]]), csr_matrix([[0] * 3, [1, 0, 0], [0, 1, 0]])).nnz
    3
    """
    found = _ones(sets)
    starts, above, ones = best_below(
        found.indptr.astype(np.int64), found.indices.astype(np.int32), found.data,
        parents.indptr.astype(np.int64), parents.indices.astype(np.int32),
    )  # fmt: skip
    return _ones(found + csr_matrix((ones, above, starts), shape=sets.shape))


def _ones(matrix: csr_matrix) -> csr_matrix:
    """The same places, each once, all with a one."""
    fresh = csr_matrix(matrix)
    fresh.sum_duplicates()
    ones = np.ones(len(fresh.indices), np.float32)
    return csr_matrix((ones, fresh.indices, fresh.indptr), shape=fresh.shape)
