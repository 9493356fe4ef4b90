"""Confused labels: one is wrongly predicted where another is missed."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.metrics.hits import found_in
from umpteen.metrics.inputs import check_answers, check_relevant, n_answers
from umpteen.validation import check_k

_ENTRIES_PER_BLOCK = 1 << 22


@dataclass(frozen=True)
class Confused:
    """How often `given` was a wrong answer to a sample where `missed` was not found.

    `share` is this part of all the times that `missed` was not found.
    """

    given: int | str
    missed: int | str
    count: int
    share: float


def most_confused(Y: Any, top: Any, n: int = 10) -> list[Confused]:
    """Return the `n` pairs of labels that are confused in most samples, most frequent first.

    For a sample with k relevant labels, each wrong label among the first k answers is paired with
    each relevant label that is not among them. Ties are in the order of their ids.

    >>> from umpteen import TopK
    >>> top = TopK(labels=[[1, 0], [1, 2], [0, 2]], scores=[[0.9, 0.5]] * 3)
    >>> most_confused([[0], [0], [0]], top, n=1)
    [Confused(given=1, missed=0, count=2, share=1.0)]
    """
    n = check_k(n, "n")
    answers = check_answers(top, n_answers(top))
    wrong, missed = _wrong_and_missed(answers.labels, check_relevant(Y, answers))
    counts, givens, instead = _largest(csr_matrix(wrong.T), missed, n)
    times_missed = np.bincount(missed.indices, minlength=missed.shape[1])[instead]
    columns = (givens, instead, counts, counts / np.maximum(times_missed, 1))
    return [Confused(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _wrong_and_missed(
    labels: npt.NDArray[np.int32], relevant: csr_matrix
) -> tuple[csr_matrix, csr_matrix]:
    """Per sample the wrong ones of its first k answers, and the relevant ones not among them."""
    k = np.diff(relevant.indptr)[:, None]
    looked_at = (np.arange(labels.shape[1]) < k) & (labels >= 0)
    right = looked_at & found_in(relevant, labels)
    wrong = _indicator(labels, looked_at & ~right, relevant.shape)
    missed = csr_matrix(relevant - _indicator(labels, right, relevant.shape), dtype=np.int32)
    missed.eliminate_zeros()
    return wrong, missed


def _indicator(labels: Any, chosen: Any, shape: tuple[int, int]) -> csr_matrix:
    """The chosen labels of each sample, once each."""
    indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])
    ones = np.ones(indptr[-1], np.int32)
    matrix = csr_matrix((ones, labels[chosen], indptr), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def _largest(given: csr_matrix, missed: csr_matrix, n: int) -> tuple[Any, Any, Any]:
    """The `n` largest entries of `given @ missed` with rows and columns, a block at a time."""
    best = np.empty((3, 0), np.int64)
    for rows in _row_blocks(given, missed):
        product = csr_matrix(given[rows] @ missed)
        product.sort_indices()  # ties stay in the order of their ids
        row_of_entry = np.repeat(np.arange(rows.start, rows.stop), np.diff(product.indptr))
        found = np.stack([product.data, row_of_entry, product.indices])
        best = np.concatenate([best, found], axis=1)
        best = best[:, np.argsort(-best[0], kind="stable")[:n]]
    return best[0], best[1], best[2]


def _row_blocks(given: csr_matrix, missed: csr_matrix) -> Iterator[slice]:
    """Rows of `given` whose products with `missed` have a bounded number of entries."""
    entries = np.cumsum(given @ np.diff(missed.indptr).astype(np.int64))
    if len(entries) == 0 or entries[-1] == 0:
        return
    cuts = np.searchsorted(entries, np.arange(0, entries[-1], _ENTRIES_PER_BLOCK)[1:])
    bounds = np.unique([0, *cuts, len(entries)])
    for start, stop in pairwise(bounds.tolist()):
        yield slice(start, stop)
