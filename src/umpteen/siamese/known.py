"""What is known of labels beside their vectors: how frequent they are, which words they have."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.sparse import csr_matrix, diags

from umpteen.parallel import PerThread
from umpteen.siamese.tower import FloatArray, IntArray

_FEW_LABELS, _SHARED_BY, _MANY_LABELS = 100, 20, 2_000


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of labels beside their vectors.

    >>> Known(csr_matrix((3, 5)), np.array([1, 0, 3])).frequent
    array([2, 0], dtype=int32)
    """

    features: csr_matrix
    counts: npt.NDArray[np.int64]  # samples of each

    @cached_property
    def frequent(self) -> IntArray:
        """Labels that have samples, the most frequent first: no vector is near them."""
        best = np.argsort(-self.counts, kind="stable")
        return best[self.counts[best] > 0].astype(np.int32)

    @cached_property
    def log_counts(self) -> FloatArray:
        """ln(1 + number of samples)."""
        return np.log1p(self.counts).astype(np.float32)

    @cached_property
    def by_word(self) -> csr_matrix:
        """(features, labels): for each word the labels that have it, unless they are many.

        Words of more than one label in twenty (and 100), or of more than 2,000, tell little.
        """
        by_word = csr_matrix(self.features.T)
        most = min(max(_FEW_LABELS, self.features.shape[0] // _SHARED_BY), _MANY_LABELS)
        rare = by_word.getnnz(axis=1) <= most
        kept = csr_matrix(diags(rare.astype(np.float32)) @ by_word)
        kept.eliminate_zeros()
        return kept

    def with_samples(self, labels: IntArray) -> IntArray:
        """The same, but -1 for those that have none, or none any more."""
        return np.where(self.counts[labels] > 0, labels, np.int32(-1))

    def nearest(self, units: csr_matrix, n: int) -> IntArray:
        """(rows, n): the labels whose words are most alike; -1 where there are no more."""
        by_word, scratch = self.by_word, self._scratch.value
        found: IntArray = nearest_by_words(
            units.indptr, units.indices, units.data, by_word.indptr, by_word.indices,
            by_word.data, *scratch[:3], n,
        )  # fmt: skip
        return found

    def cosines(self, units: csr_matrix, candidates: IntArray) -> FloatArray:
        """Of the words of rows and of candidates."""
        features, scratch = self.features, self._scratch.value
        found: FloatArray = word_products(
            units.indptr, units.indices, units.data, features.indptr, features.indices,
            features.data, scratch[3], candidates,
        )  # fmt: skip
        return found

    @cached_property
    def _scratch(self) -> PerThread[tuple[Any, ...]]:
        n_labels, n_features = self.features.shape
        return PerThread(
            lambda: (
                np.zeros(n_labels, np.float32), np.zeros(n_labels, np.bool_),
                np.zeros(n_labels, np.int32), np.zeros(n_features, np.float32),
            )
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        return Known, (self.features, self.counts)  # the rest is derived again


@njit(nogil=True, cache=True)
def nearest_by_words(
    indptr: Any, indices: Any, values: Any, word_ptr: Any, word_labels: Any, word_values: Any,
    sums: Any, is_touched: Any, touched: Any, n: int,
) -> npt.NDArray[np.int32]:  # fmt: skip
    """The n labels of the largest inner products above 0, in any order; -1 where there are none.

    `sums`, `is_touched` and `touched` have a place for each label; the first two are zero before
    and after.
    """
    found = np.full((len(indptr) - 1, n), -1, np.int32)
    best = np.empty(n, np.float32)
    for row in range(len(indptr) - 1):
        n_touched = 0
        for entry in range(indptr[row], indptr[row + 1]):
            word = indices[entry]
            for place in range(word_ptr[word], word_ptr[word + 1]):
                label = word_labels[place]
                if not is_touched[label]:
                    is_touched[label], touched[n_touched] = True, label
                    n_touched += 1
                sums[label] += values[entry] * word_values[place]
        best[:] = 0
        least = 0  # of `best`
        for place in range(n_touched):
            label = touched[place]
            if sums[label] > best[least]:
                best[least], found[row, least] = sums[label], label
                least = int(np.argmin(best))
            sums[label], is_touched[label] = 0, False
    return found


@njit(nogil=True, cache=True)
def word_products(
    indptr: Any, indices: Any, values: Any, label_indptr: Any, label_indices: Any,
    label_values: Any, dense: Any, candidates: Any,
) -> npt.NDArray[np.float32]:  # fmt: skip
    """Inner products of sparse rows and the sparse rows of their candidates (n, any); 0 for -1.

    `dense` has a place for each feature, zero before and after.
    """
    found = np.zeros(candidates.shape, np.float32)
    for row in range(candidates.shape[0]):
        for entry in range(indptr[row], indptr[row + 1]):
            dense[indices[entry]] = values[entry]
        for place in range(candidates.shape[1]):
            label = candidates[row, place]
            if label >= 0:
                total = np.float32(0)
                for entry in range(label_indptr[label], label_indptr[label + 1]):
                    total += label_values[entry] * dense[label_indices[entry]]
                found[row, place] = total
        for entry in range(indptr[row], indptr[row + 1]):
            dense[indices[entry]] = 0
    return found
