"""Products of a sample's words with the sparse rows of its candidates."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.kernels.compiling import frozen
from umpteen.kernels.label_evidence import word_products
from umpteen.kernels.topk import frozen_csr
from umpteen.parallel import PerThread
from umpteen.siamese.tower import FloatArray, IntArray

_LONG = 1024  # entries


class WordProducts:
    """A matrix with a row for each label, for products with candidates of each sample.

    Frequent labels have long rows, and are candidates of every sample. What the words of a sample
    say about them is looked up by word, which does not depend on the length of their rows.

    >>> rows = WordProducts(csr_matrix([[0.5, 0], [1, 2]], dtype=np.float32))
    >>> rows.of(csr_matrix([[2, 1]], dtype=np.float32), np.array([[1, -1, 0]], np.int32))
    array([[4., 0., 1.]], dtype=float32)
    """

    def __init__(self, rows: csr_matrix) -> None:
        self.rows = rows

    def of(self, samples: csr_matrix, candidates: IntArray) -> FloatArray:
        """Return `(n, candidates)`; 0 where there is no candidate."""
        found: FloatArray = word_products(
            *frozen_csr(samples), *self._arrays, *self._scratch.value, candidates
        )
        return found

    @cached_property
    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The rows, the place of each label among the long ones, and those by word."""
        places = np.full(self.rows.shape[0], -1, np.int32)
        places[self._long] = np.arange(len(self._long))
        by_word = csr_matrix(self.rows[self._long].T)
        return *frozen_csr(self.rows), frozen(places), *frozen_csr(by_word)

    @cached_property
    def _long(self) -> npt.NDArray[np.int64]:
        """The labels with long rows."""
        return np.flatnonzero(np.diff(self.rows.indptr) > _LONG)

    @cached_property
    def _scratch(self) -> PerThread[tuple[FloatArray, FloatArray]]:
        sizes = self.rows.shape[1], len(self._long)
        return PerThread(lambda: (np.zeros(sizes[0], np.float32), np.zeros(sizes[1], np.float32)))
