"""Answers and their relatives: keep the most specific labels, or add all broader ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.base import TopK
from umpteen.errors import LabelsError, LabelsShapeError, ParameterError
from umpteen.kernels.ancestors import best_below
from umpteen.validation import check_number, check_parents

_ROWS_PER_BLOCK = 1 << 16


def most_specific(top: TopK, parents: Any, *, ratio: float = 0.5) -> TopK:
    """Return the answers without labels that a narrower answer makes redundant.

    A label is dropped if one of its descendants is answered for the same sample with at least
    `ratio` times its score. If scores are probabilities, a descendant with half the probability of
    the label is right in at least half of the cases in which the label is. A long list of answers
    ends with improbable ones: with `ratio=0`, any of them drops all its ancestors, so shorten the
    list first (`top.first(k)` or `top.cut(least)`). Scores below 0 need `ratio=0`.

    Row i of `parents` `(n_labels, n_labels)` marks the direct parents of label i.

    >>> parents = [[], [0], [1]]  # 0 animal, 1 dog, 2 poodle
    >>> top = TopK(labels=[[0, 1, 2]], scores=[[0.9, 0.8, 0.1]])
    >>> most_specific(top, parents).labels
    array([[ 1,  2, -1]], dtype=int32)
    >>> most_specific(top, parents, ratio=0).labels
    array([[ 2, -1, -1]], dtype=int32)
    """
    ratio = check_number(ratio, "ratio")
    matrix = _checked(top, parents)
    answered = top.labels >= 0
    if ratio and answered.any() and top.scores[answered].min() < 0:
        raise ParameterError(
            f"ratio={ratio} compares scores, but some are below 0, so they are no probabilities: "
            "use ratio=0, after top.first(k)"
        )
    kept = answered.copy()
    for start in range(0, len(top), _ROWS_PER_BLOCK):
        rows = slice(start, start + _ROWS_PER_BLOCK)
        answers = _Entries.of(top[rows], matrix.shape[0])
        below = _best_descendants(answers, matrix)
        keys = _keys(top.labels[rows], matrix.shape[0])
        where = np.searchsorted(below.keys, keys).clip(max=max(len(below.keys) - 1, 0))
        if len(below.keys):
            has = (below.keys[where] == keys) & answered[rows]
            near = below.scores[where] >= np.float32(ratio) * top.scores[rows] if ratio else True
            kept[rows] &= ~(has & near)
    return top.keep(kept)


def with_ancestors(top: TopK, parents: Any) -> TopK:
    """Return the answers with all ancestors of the answered labels, best first.

    An ancestor gets the best score among its answered descendants, or keeps its own if that is
    higher: a sample is a dog at least as probably as it is a poodle. Ties go to the lowest label
    id. The result has as many columns as the longest row needs, and no fewer than `top`;
    `with_ancestors(top, parents).first(k)` keeps the best.

    Row i of `parents` `(n_labels, n_labels)` marks the direct parents of label i.

    >>> parents = [[], [0], [1]]  # 0 animal, 1 dog, 2 poodle
    >>> top = with_ancestors(TopK(labels=[[2, 0]], scores=[[0.8, 0.1]]), parents)
    >>> top.labels
    array([[0, 1, 2]], dtype=int32)
    >>> top.scores
    array([[0.8, 0.8, 0.8]], dtype=float32)
    """
    matrix = _checked(top, parents)
    blocks = [
        _extended(top[start : start + _ROWS_PER_BLOCK], matrix)
        for start in range(0, len(top), _ROWS_PER_BLOCK)
    ] or [top]
    width = max(block.k for block in blocks)
    return TopK.concatenate(block.padded(width) for block in blocks) if width else top


@dataclass(frozen=True, eq=False)
class _Entries:
    """Scores of pairs of a row and a label, by `row * n_labels + label`, rising, each once."""

    keys: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float32]

    @classmethod
    def of(cls, top: TopK, n_labels: int) -> "_Entries":
        given = top.labels >= 0
        return cls.best(_keys(top.labels, n_labels)[given], top.scores[given])

    @classmethod
    def best(cls, keys: npt.NDArray[np.int64], scores: npt.NDArray[np.float32]) -> "_Entries":
        """The best score of each key."""
        order = np.lexsort((-scores, keys))
        keys, scores = keys[order], scores[order]
        first = np.diff(keys, prepend=-1) > 0
        return cls(keys[first], scores[first])

    def merged(self, other: "_Entries") -> "_Entries":
        """The best score of each key of both."""
        return _Entries.best(
            np.concatenate([self.keys, other.keys]), np.concatenate([self.scores, other.scores])
        )


def _best_descendants(answers: _Entries, parents: csr_matrix) -> _Entries:
    """The best score among the answered descendants of every ancestor of an answer."""
    n_labels = parents.shape[0]
    rows, labels = np.divmod(answers.keys, max(n_labels, 1))
    order = np.lexsort((-answers.scores, rows))
    n_rows = int(rows.max(initial=-1)) + 1
    starts = np.searchsorted(rows, np.arange(n_rows + 1))
    found_starts, above, scores = best_below(
        starts, labels[order].astype(np.int32), answers.scores[order],
        parents.indptr.astype(np.int64), parents.indices.astype(np.int32),
    )  # fmt: skip
    keys = np.repeat(np.arange(n_rows) * n_labels, np.diff(found_starts)) + above
    return _Entries.best(keys, scores)


def _extended(top: TopK, parents: csr_matrix) -> TopK:
    answers = _Entries.of(top, parents.shape[0])
    entries = answers.merged(_best_descendants(answers, parents))
    rows, labels = np.divmod(entries.keys, max(parents.shape[0], 1))
    order = np.lexsort((labels, -entries.scores, rows))
    counts = np.bincount(rows, minlength=len(top))
    places = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = (len(top), max(int(counts.max(initial=0)), top.k))
    found = np.full(shape, -1, np.int32), np.full(shape, -np.inf, np.float32)
    found[0][rows[order], places] = labels[order]
    found[1][rows[order], places] = entries.scores[order]
    return TopK(*found)


def _keys(labels: npt.NDArray[np.int32], n_labels: int) -> npt.NDArray[np.int64]:
    rows = np.arange(len(labels), dtype=np.int64)[:, None]
    return np.asarray(rows * n_labels + labels)


def _checked(top: Any, parents: Any) -> csr_matrix:
    if not isinstance(top, TopK):
        raise LabelsError(
            f"top is a {type(top).__name__}; expected a TopK: TopK.from_csr(scores, k) makes one"
        )
    matrix = check_parents(parents)
    largest = int(top.labels.max(initial=-1))
    if largest >= matrix.shape[0]:
        raise LabelsShapeError(
            f"top holds the label id {largest:,}, but parents has {matrix.shape[0]:,} rows; each "
            "label has its row, in the same order as in training"
        )
    return matrix
