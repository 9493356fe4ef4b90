"""Labels by their words and their frequency, which vectors do not tell."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags

from umpteen.kernels.label_evidence import best_by_words, nearest_by_words
from umpteen.kernels.topk import frozen_csr
from umpteen.parallel import PerThread
from umpteen.siamese.tower import FloatArray, IntArray
from umpteen.siamese.word_products import WordProducts

_FEW_LABELS, _SHARED_BY, _MANY_LABELS = 100, 20, 2_000


@dataclass(frozen=True, eq=False)
class LexicalIndex:
    """The words of labels, and how many samples each has.

    >>> LexicalIndex(csr_matrix((3, 5)), np.array([1, 0, 3])).frequent
    array([2, 0], dtype=int32)
    """

    features: csr_matrix
    counts: npt.NDArray[np.int64]  # samples of each

    @cached_property
    def frequent(self) -> IntArray:
        """The labels that have samples, the most frequent first."""
        best = np.argsort(-self.counts, kind="stable")
        return best[self.counts[best] > 0].astype(np.int32)

    @cached_property
    def log_counts(self) -> FloatArray:
        """The logarithm of 1 + the number of samples, for each label."""
        return np.log1p(self.counts).astype(np.float32)

    @cached_property
    def by_word(self) -> csr_matrix:
        """The labels of each word (features, labels), unless they are many.

        Words of more than one label in twenty (and 100), or of more than 2,000, tell little.
        """
        by_word = csr_matrix(self.features.T)
        most = min(max(_FEW_LABELS, self.features.shape[0] // _SHARED_BY), _MANY_LABELS)
        rare = by_word.getnnz(axis=1) <= most
        kept = csr_matrix(diags(rare.astype(np.float32)) @ by_word)
        kept.eliminate_zeros()
        return kept

    def with_samples(self, labels: IntArray) -> IntArray:
        """Return the labels, but -1 for those without samples."""
        return np.where(self.counts[labels] > 0, labels, np.int32(-1))

    def nearest(self, units: csr_matrix, n: int) -> tuple[IntArray, FloatArray]:
        """Return the labels with the most similar words, (rows, n), and what `best` returns.

        Labels are -1 where there are no more.
        """
        found: tuple[IntArray, FloatArray] = nearest_by_words(
            *frozen_csr(units), *self._postings, *self._scratch.value, n
        )
        return found

    def best(self, units: csr_matrix) -> FloatArray:
        """Return (rows,): the cosine to the most similar label, by words that `by_word` has."""
        found: FloatArray = best_by_words(
            *frozen_csr(units), *self._postings, self._scratch.value[0]
        )
        return found

    def cosines(self, units: csr_matrix, candidates: IntArray) -> FloatArray:
        """Return the cosines of the words of rows and of candidates."""
        return self._products.of(units, candidates)

    @cached_property
    def _postings(self) -> tuple[npt.NDArray[Any], ...]:
        return frozen_csr(self.by_word)

    @cached_property
    def _products(self) -> WordProducts:
        return WordProducts(self.features)

    @cached_property
    def _scratch(self) -> PerThread[tuple[Any, ...]]:
        n_labels = self.features.shape[0]
        return PerThread(
            lambda: (
                np.zeros(n_labels, np.float32), np.zeros(n_labels, np.bool_),
                np.zeros(n_labels, np.int32),
            )
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        return LexicalIndex, (self.features, self.counts)  # the rest is derived again


def index_of(texts: csr_matrix | None, lexical: LexicalIndex) -> LexicalIndex | None:
    """Return an index of these words: that of all labels, if these are the words of all labels."""
    if texts is None:
        return None
    arrays = ("indptr", "indices", "data")
    same = texts.shape == lexical.features.shape and all(
        np.array_equal(getattr(texts, name), getattr(lexical.features, name)) for name in arrays
    )
    return lexical if same else LexicalIndex(texts, np.zeros(texts.shape[0], np.int64))
