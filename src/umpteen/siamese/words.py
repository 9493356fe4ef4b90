"""What each label learned of single words: sparse linear classifiers beside its vectors.

A vector of a few hundred numbers cannot tell every word from every other, and frequent labels have
the samples to learn of each word by itself. So Module III has a second view of a sample, its
features themselves: w_l x + b_l, trained on the hard negatives of Module II and on random ones. The
label's text is one more sample of it, which tells most about labels with few.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from scipy.sparse import csr_matrix, diags, vstack

from umpteen import parallel
from umpteen.kernels.compiling import frozen
from umpteen.kernels.word_classifiers import train_word_classifiers
from umpteen.progress import Verbose, progress_bar
from umpteen.siamese.tower import FloatArray, IntArray
from umpteen.siamese.word_products import WordProducts
from umpteen.storage import Shape, storable

_COST, _TOLERANCE, _MAX_EPOCHS, _PRUNE = 1.0, 0.1, 20, 0.1
_N_RANDOM, _PER_SAMPLE = 200, 4  # random negatives: at least, and for each sample of the label
_BLOCK = 256  # labels whose random negatives are drawn together


@storable
@dataclass(frozen=True, eq=False)
class WordClassifiers:
    """A weight of each word and a bias, for each label; scores of relevant ones are near 1.

    >>> X = csr_matrix(np.eye(4, 3, dtype=np.float32))
    >>> words = WordClassifiers.fitted(X, csr_matrix([[1, 0], [1, 0], [0, 1], [0, 0]]), [])
    >>> words.scores(X[:1], np.array([[0, 1, -1]], np.int32)).round(1)
    array([[ 0.6, -0.8,  0. ]], dtype=float32)
    """

    weights: Annotated[csr_matrix, Shape("labels", "features")]
    biases: Annotated[FloatArray, Shape("labels")]

    @classmethod
    def fitted(
        cls, X: csr_matrix, Y: csr_matrix, hard: Sequence[IntArray], seed: int = 0,
        n_jobs: int | None = None, verbose: Verbose = False, texts: csr_matrix | None = None,
    ) -> "WordClassifiers":  # fmt: skip
        """Train on rows of length 1, with tables of hard negatives `(samples, any)`; -1 is none.

        A row of `texts` `(labels, features)` counts as a sample of its label if that has samples,
        and as none of any other label; an empty row does not count.
        """
        n_samples, negatives = X.shape[0], _samples_of(hard, Y.shape)
        if texts is not None:
            X, Y = _with_texts(X, Y, texts)
        own = csr_matrix(Y.T)
        squares = np.asarray(X.multiply(X).sum(axis=1), np.float64).ravel()
        rows = (X.indptr, X.indices, X.data, squares)
        samples = (own.indptr, own.indices, negatives.indptr, negatives.indices)
        firsts = range(0, Y.shape[1], _BLOCK)
        tasks = [range(first, min(first + _BLOCK, Y.shape[1])) for first in firsts]
        with progress_bar("Learning words", len(tasks), verbose=verbose) as bar:
            blocks = parallel.map(
                _trained, tasks, (frozen((*rows, *samples)), n_samples, seed), n_jobs=n_jobs,
                done=lambda _: bar.advance(),
            )  # fmt: skip
        sizes = np.concatenate([np.diff(begins) for begins, *_ in blocks])
        weights = csr_matrix(
            (
                np.concatenate([values for _, _, values, _ in blocks]),
                np.concatenate([features for _, features, _, _ in blocks]),
                np.r_[0, np.cumsum(sizes)],
            ),
            shape=(Y.shape[1], X.shape[1]),
        )
        weights.sort_indices()
        return cls(weights, np.concatenate([biases for *_, biases in blocks]))

    def scores(self, units: csr_matrix, candidates: IntArray) -> FloatArray:
        """Return `(rows, candidates)`, of rows of length 1; 0 where there is no candidate."""
        found = self._products.of(units, candidates)
        return found + np.where(candidates >= 0, self.biases[candidates], np.float32(0))

    def with_labels(self, X: csr_matrix, Y: csr_matrix) -> "WordClassifiers":
        """Return classifiers with more labels, which know the mean of their samples.

        A label's samples get a score of 1 on average, a sample that shares no word with them -1.
        """
        counts = Y.getnnz(axis=0)
        shares = (1 / np.maximum(1, counts)).astype(np.float32)
        means = csr_matrix(diags(shares) @ Y.T @ X)
        squares = np.asarray(means.multiply(means).sum(axis=1), np.float32).ravel()
        new = csr_matrix(diags(2 / np.where(squares > 0, squares, np.float32(1))) @ means)
        new.sort_indices()
        biases = np.full(len(counts), -1, np.float32)
        return WordClassifiers(
            csr_matrix(vstack([self.weights, new])), np.concatenate([self.biases, biases])
        )

    @cached_property
    def _products(self) -> WordProducts:
        return WordProducts(self.weights)

    def __reduce__(self) -> tuple[Any, ...]:
        return WordClassifiers, (self.weights, self.biases)  # the rest is derived again


def _trained(labels: range, arrays: tuple[Any, ...], n_samples: int, seed: int) -> tuple[Any, ...]:
    """The classifiers of a block of labels."""
    *rows, own_indptr, own, hard_indptr, hard = arrays
    order = np.random.default_rng([seed, labels.start]).permutation(n_samples)
    found: tuple[Any, ...] = train_word_classifiers(
        *rows, own_indptr, own, hard_indptr, hard, order, labels.start, labels.stop,
        _N_RANDOM, _PER_SAMPLE, _COST, _TOLERANCE, _MAX_EPOCHS, _PRUNE,
    )  # fmt: skip
    return found


def _with_texts(X: csr_matrix, Y: csr_matrix, texts: csr_matrix) -> tuple[csr_matrix, csr_matrix]:
    """Samples, followed by the texts of labels that have samples; and the labels of all rows."""
    described = np.flatnonzero((Y.getnnz(axis=0) > 0) & (texts.getnnz(axis=1) > 0))
    rows = np.arange(len(described))
    own = csr_matrix(
        (np.ones(len(rows), Y.dtype), (rows, described)), shape=(len(rows), Y.shape[1])
    )
    return csr_matrix(vstack([X, texts[described]])), csr_matrix(vstack([Y, own]))


def _samples_of(hard: Sequence[IntArray], shape: tuple[int, int]) -> csr_matrix:
    """(labels, samples) that are hard negatives of each label."""
    pairs = [np.nonzero(table >= 0) for table in hard]
    samples = np.concatenate([rows for rows, _ in pairs] or [np.zeros(0, np.int64)])
    labels = [table[at] for table, at in zip(hard, pairs, strict=True)]
    of = np.concatenate(labels or [np.zeros(0, np.int32)])
    found = csr_matrix((np.ones(len(of), np.bool_), (of, samples)), shape=shape[::-1])
    found.sum_duplicates()
    return found
