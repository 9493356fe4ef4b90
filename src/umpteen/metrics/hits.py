"""Which answers are right: found once, and counted by every metric."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.base import TopK
from umpteen.errors import LabelsError
from umpteen.metrics.inputs import FloatArray, Ks, check_answers, check_ks, check_relevant

_ROWS_PER_BLOCK = 1 << 13


@dataclass(frozen=True, eq=False)
class Hits:
    """Answers (`labels`), which of them are relevant (`found`), and all that is `relevant`."""

    labels: npt.NDArray[np.int32]
    found: npt.NDArray[np.bool_]
    relevant: csr_matrix

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_relevant(self) -> npt.NDArray[np.int32]:
        """The number of relevant labels of each sample."""
        return np.diff(self.relevant.indptr)

    @property
    def n_labelled(self) -> int:
        """The number of samples that have a relevant label."""
        return int(np.count_nonzero(self.n_relevant))

    @cached_property
    def relevant_per_label(self) -> npt.NDArray[np.int64]:
        """The number of samples that each label is relevant to."""
        return np.bincount(self.relevant.indices, minlength=self.relevant.shape[1])

    def total(
        self,
        k: int,
        *,
        sample_weights: FloatArray | None = None,
        label_weights: FloatArray | None = None,
        place_weights: FloatArray | None = None,
    ) -> float:
        """Return the hits in the first `k` places, each counted by the product of its weights."""
        total = 0.0
        for place in range(min(k, self.labels.shape[1])):
            rows = np.flatnonzero(self.found[:, place])
            weights = np.ones(len(rows)) if sample_weights is None else sample_weights[rows]
            if label_weights is not None:
                weights = weights * label_weights[self.labels[rows, place]]
            total += weights.sum() * (1.0 if place_weights is None else place_weights[place])
        return float(total)

    def per_label(self, k: int) -> npt.NDArray[np.int64]:
        """Count how often each label was found in the first `k` places."""
        return _count_labels(self.labels[:, :k], self.found[:, :k], self.relevant.shape[1])

    def answers_per_label(self, k: int) -> npt.NDArray[np.int64]:
        """Count how often each label was answered in the first `k` places, right or wrong."""
        return _count_labels(self.labels[:, :k], self.labels[:, :k] >= 0, self.relevant.shape[1])


def find_hits(Y: Any, top: Any, k: Ks, n_labels: int | None = None) -> Hits:
    """Find the answers that are in `Y`; a label that is answered twice counts at its first place.

    >>> find_hits([[0, 2], [1]], TopK([[2, 1], [1, 1]], [[0.9, 0.5], [0.9, 0.5]]), k=2).found
    array([[ True, False],
           [ True, False]])
    """
    if isinstance(Y, TopK):
        raise LabelsError("Y is a TopK: metrics take (Y, top, k), evaluate takes (top, Y)")
    answers = check_answers(top, max(check_ks(k)))
    relevant = check_relevant(Y, answers, n_labels)
    return Hits(answers.labels, found_in(relevant, answers.labels, once=True), relevant)


def entry_blocks(matrix: csr_matrix) -> Iterator[tuple[slice, slice, npt.NDArray[np.int64]]]:
    """Yield blocks of rows: the rows, their stored entries, and each entry's row in the block."""
    for start in range(0, matrix.shape[0], _ROWS_PER_BLOCK):
        indptr = matrix.indptr[start : start + _ROWS_PER_BLOCK + 1]
        n_rows = len(indptr) - 1
        rows = np.repeat(np.arange(n_rows, dtype=np.int64), np.diff(indptr))
        yield slice(start, start + n_rows), slice(int(indptr[0]), int(indptr[-1])), rows


def found_in(
    relevant: csr_matrix, labels: npt.NDArray[np.int32], *, once: bool = False
) -> npt.NDArray[np.bool_]:
    """Return which of `labels` are stored in the same row of `relevant`, with sorted columns."""
    n_labels = relevant.shape[1]
    found = np.zeros(labels.shape, bool)
    for rows, entries, row_of_entry in entry_blocks(relevant):
        if len(row_of_entry) == 0:
            continue
        keys = row_of_entry * n_labels + relevant.indices[entries]
        asked = labels[rows] + (np.arange(rows.stop - rows.start) * n_labels)[:, None]
        where = np.searchsorted(keys, asked)
        where[where == len(keys)] = 0
        hit = (keys[where] == asked) & (labels[rows] >= 0)
        found[rows] = _first_time(hit, where, len(keys)) if once else hit
    return found


def _first_time(
    hit: npt.NDArray[np.bool_], where: npt.NDArray[np.intp], n_entries: int
) -> npt.NDArray[np.bool_]:
    """`hit` without those that point to an entry which an earlier one points to."""
    positions = np.flatnonzero(hit)
    entries = where.ravel()[positions]
    first = np.empty(n_entries, np.int64)
    first[entries[::-1]] = positions[::-1]  # of equal indices, numpy keeps the last
    once = np.zeros(hit.size, bool)
    once[first[entries]] = True
    return once.reshape(hit.shape)


def _count_labels(
    labels: npt.NDArray[np.int32], chosen: npt.NDArray[np.bool_], n_labels: int
) -> npt.NDArray[np.int64]:
    counts = np.zeros(n_labels, np.int64)
    for place in range(labels.shape[1]):
        counts += np.bincount(labels[chosen[:, place], place], minlength=n_labels)
    return counts
