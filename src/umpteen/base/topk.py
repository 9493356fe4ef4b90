"""`TopK`: what every method answers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.errors import LabelsError, LabelsShapeError
from umpteen.markup import Html, notebook, table, tag
from umpteen.validation import check_features, check_k

Name = TypeVar("Name")

_ROWS_SHOWN, _COLUMNS_SHOWN = 10, 10  # in a notebook


@dataclass(frozen=True, eq=False)
class TopK:
    """The k best labels of each sample and their scores, best first; ties go to the lowest id.

    `labels` and `scores` have shape `(n_samples, min(k, n_labels))`: if `k` exceeds the number of
    labels, there is one column per label. This holds for every classifier, head and index. If a
    sample has fewer candidates, the remaining places hold label -1 with score -inf. Metrics at k
    accept such narrower results and count the missing labels as misses.

    >>> top = TopK(labels=[[2, 0], [1, -1]], scores=[[0.9, 0.5], [0.7, -np.inf]])
    >>> top.to_csr(n_labels=3).toarray()
    array([[0.5, 0. , 0.9],
           [0. , 0.7, 0. ]], dtype=float32)
    """

    labels: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        labels = _as_label_ids(self.labels)
        scores = np.asarray(self.scores, dtype=np.float32)
        if labels.ndim != 2 or labels.shape != scores.shape:
            raise LabelsShapeError(
                f"labels have shape {labels.shape} and scores {scores.shape}; "
                "expected two tables of the same shape (samples, k)"
            )
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "scores", scores)

    @property
    def k(self) -> int:
        """The number of columns: the maximum number of labels per sample."""
        return int(self.labels.shape[1])

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: Any) -> "TopK":
        """The answers of some samples, chosen as in a numpy array."""
        return TopK(np.atleast_2d(self.labels[rows]), np.atleast_2d(self.scores[rows]))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TopK)
            and np.array_equal(self.labels, other.labels)
            and np.array_equal(self.scores, other.scores)
        )

    __hash__ = None  # type: ignore[assignment]

    def first(self, k: int) -> "TopK":
        """Return the `k` best of these answers."""
        k = check_k(k)
        return TopK(self.labels[:, :k], self.scores[:, :k])

    def padded(self, k: int) -> "TopK":
        """Return a copy with at least `k` columns; new places hold label -1 with score -inf."""
        more = (len(self), max(check_k(k) - self.k, 0))
        return TopK(
            np.hstack([self.labels, np.full(more, -1, np.int32)]),
            np.hstack([self.scores, np.full(more, -np.inf, np.float32)]),
        )

    def keep(self, chosen: npt.NDArray[np.bool_]) -> "TopK":
        """Return only the answers that `chosen` `(n_samples, k)` marks, moved to the front."""
        chosen = chosen & (self.labels >= 0)
        order = np.argsort(~chosen, axis=1, kind="stable")
        labels = np.take_along_axis(np.where(chosen, self.labels, -1), order, axis=1)
        scores = np.take_along_axis(np.where(chosen, self.scores, -np.inf), order, axis=1)
        return TopK(labels, scores)

    def cut(self, least: float | npt.NDArray[np.float32], min_labels: int = 0) -> "TopK":
        """Return only the answers with a score of at least `least`, and the best `min_labels`.

        >>> TopK(labels=[[2, 0]], scores=[[0.9, 0.5]]).cut(0.7).labels
        array([[ 2, -1]], dtype=int32)
        """
        return self.keep((self.scores >= least) | (np.arange(self.k) < min_labels))

    def to_csr(self, n_labels: int) -> csr_matrix:
        """Return the scores as a sparse matrix `(samples, n_labels)` without absent labels."""
        self._check_ids_below(n_labels)
        given = self.labels >= 0
        indptr = np.concatenate([[0], np.cumsum(given.sum(axis=1))])
        matrix = csr_matrix(
            (self.scores[given], self.labels[given], indptr), shape=(len(self), n_labels)
        )
        matrix.sort_indices()
        return matrix

    def names(self, label_names: Sequence[Name]) -> list[list[tuple[Name, float]]]:
        """Return the (name, score) pairs of each sample, best first, rounded to six digits.

        Scores that are equal after rounding are ordered by label id.

        >>> TopK(labels=[[2, 0, 1]], scores=[[0.50000004, 0.5, 0.1]]).names("abc")
        [[('a', 0.5), ('c', 0.5), ('b', 0.1)]]
        """
        self._check_ids_below(len(label_names))
        rounded = (
            [(-round(score, 6), label) for label, score in zip(*row, strict=True) if label >= 0]
            for row in zip(self.labels.tolist(), self.scores.tolist(), strict=True)
        )
        return [[(label_names[label], -score) for score, label in sorted(row)] for row in rounded]

    @classmethod
    def concatenate(cls, answers: Iterable["TopK"]) -> "TopK":
        """Return one answer made of the answers to consecutive samples."""
        answers = list(answers)
        if len(answers) == 1:
            return answers[0]
        return cls(
            np.concatenate([answer.labels for answer in answers]),
            np.concatenate([answer.scores for answer in answers]),
        )

    @classmethod
    def from_csr(cls, scores: Any, k: int) -> "TopK":
        """Return the k best stored scores of each row of a sparse matrix `(samples, n_labels)`.

        >>> TopK.from_csr(csr_matrix([[0.5, 0.0, 0.9, 0.5]]), k=2).labels
        array([[2, 0]], dtype=int32)
        """
        k = check_k(k)
        matrix = csr_matrix(check_features(scores, name="scores"))
        k = min(k, matrix.shape[1])
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        order = np.lexsort((matrix.indices, -matrix.data, rows))
        rank = np.arange(len(order)) - np.repeat(matrix.indptr[:-1], np.diff(matrix.indptr))
        order, rank = order[rank < k], rank[rank < k]
        labels = np.full((matrix.shape[0], k), -1, np.int32)
        values = np.full((matrix.shape[0], k), -np.inf, np.float32)
        labels[rows[order], rank] = matrix.indices[order]
        values[rows[order], rank] = matrix.data[order]
        return cls(labels, values)

    def _repr_html_(self) -> str:
        """Return the first samples with their labels and scores, as a notebook shows them."""
        shown = self[:_ROWS_SHOWN].first(_COLUMNS_SHOWN) if self.labels.size else self
        headings = ["sample", *(f"{place}" for place in range(1, shown.k + 1))]
        rows = [
            [sample, *map(_cell, labels, scores)]
            for sample, (labels, scores) in enumerate(zip(shown.labels, shown.scores, strict=True))
        ]
        caption = f"{len(self):,} samples, {self.k:,} labels each, with scores"
        return notebook(table(caption, headings, rows))

    def _check_ids_below(self, n_labels: int) -> None:
        if self.labels.size and self.labels.max() >= n_labels:
            raise LabelsError(
                f"label id {self.labels.max():,} does not fit {n_labels:,} labels, numbered from 0"
            )


def _cell(label: int, score: float) -> Html | str:
    return Html(f"{label} {tag('small', f'{score:.3g}')}") if label >= 0 else ""


def _as_label_ids(labels: Any) -> npt.NDArray[np.int32]:
    ids = np.asarray(labels)
    if ids.size and (
        ids.dtype.kind not in "iu" or ids.min() < -1 or ids.max() > np.iinfo(np.int32).max
    ):
        raise LabelsError(
            f"labels of dtype {ids.dtype} are not label ids: expected whole numbers of 32 bits, "
            "from 0, or -1 for none"
        )
    return ids.astype(np.int32, copy=False)
