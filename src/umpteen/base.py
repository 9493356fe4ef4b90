"""The contract: `TopK` is what every method answers, `ExtremeClassifier` what every method is."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from inspect import get_annotations
from os import PathLike
from typing import Annotated, Any, ClassVar, Self, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags

from umpteen import storage
from umpteen.errors import FeaturesError, LabelsError, LabelsShapeError, NotFittedError
from umpteen.validation import (
    Features,
    check_features,
    check_k,
    check_labels,
    check_parameters,
    is_single_label,
)

Name = TypeVar("Name")

_BLOCK_SCORES = 2**22  # scores of all labels held at a time


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
        """How many labels each sample was given at the most."""
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
        """The best `k` of these."""
        k = check_k(k)
        return TopK(self.labels[:, :k], self.scores[:, :k])

    def padded(self, k: int) -> "TopK":
        """Return a copy with at least `k` columns; new places hold label -1 with score -inf."""
        more = (len(self), max(check_k(k) - self.k, 0))
        return TopK(
            np.hstack([self.labels, np.full(more, -1, np.int32)]),
            np.hstack([self.scores, np.full(more, -np.inf, np.float32)]),
        )

    def to_csr(self, n_labels: int) -> csr_matrix:
        """Scores as a sparse matrix `(samples, n_labels)`; absent labels are not stored."""
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
    def concatenate(cls, parts: Iterable["TopK"]) -> "TopK":
        """One answer out of the answers of consecutive parts."""
        parts = list(parts)
        return cls(
            np.concatenate([part.labels for part in parts]),
            np.concatenate([part.scores for part in parts]),
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

    def _check_ids_below(self, n_labels: int) -> None:
        if self.labels.size and self.labels.max() >= n_labels:
            raise LabelsError(
                f"label id {self.labels.max():,} does not fit {n_labels:,} labels, numbered from 0"
            )


def _table_of(top: TopK, n_labels: int) -> npt.NDArray[np.float32]:
    """(samples, n_labels): scores, and for what is not offered 0 or the lowest if negative."""
    given = top.labels >= 0
    lowest = np.min(top.scores, axis=1, initial=0, where=given, keepdims=True)
    table = np.repeat(lowest, n_labels, axis=1)
    table[np.nonzero(given)[0], top.labels[given]] = top.scores[given]
    return table


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


class ExtremeClassifier(ClassifierMixin, BaseEstimator, ABC):
    """What every method is: a scikit-learn classifier for very many labels.

    **Words.** `X` are features of n samples, sparse or dense, `(n, d)`. `Y` are their relevant
    labels: a sparse or dense indicator `(n, n_labels)` with non-zero = relevant, a list of
    label-id lists, or a 1-D array with one label id per sample. Labels are numbered from 0.

    **Corners.** A sample may have no features or no labels, a label may have no samples. Such a
    label is never predicted unless the method knows it otherwise (by its own features). Bad
    input raises one of `umpteen.errors`, each with advice.

    **Promises.** `fit` never modifies its input; the same `random_state` gives the same bits
    for any number of threads; nothing dense of size samples x labels is ever built; a saved
    model answers with the same bits as before.

    **Writing a method.** Keyword-only constructor that only stores its arguments;
    `_parameter_constraints` says what they may be; `fit` begins with `_check_fit` and stores
    what it learns in attributes that end in `_` (arrays, sparse matrices, numbers, texts, lists
    of these: that is what `save` writes), each declared in the class (`centroids_: Features`):
    once all of them are there, the classifier counts as fitted; `_topk` answers for checked input.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    n_features_in_: Annotated[int, storage.Size("features")]
    n_labels_: Annotated[int, storage.Size("labels"), storage.Within(1, 2**27)]
    single_label_: bool
    labels_per_sample_: Annotated[int, storage.Within(1, 2**31)]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        storage.storable(cls)

    @abstractmethod
    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from samples and their labels; returns the classifier itself."""

    @abstractmethod
    def _topk(self, X: Features, k: int) -> TopK:
        """Return the `k` best labels for checked input, best first; ties go to the lowest id.

        `labels` and `scores` have shape `(n, k)`; `k` is at most `n_labels_`.
        """

    def predict_topk(self, X: Any, k: int = 5) -> TopK:
        """Return the `k` best labels of each sample and their scores, best first.

        The result has at most `n_labels_` columns, even if `k` is larger (see `TopK`).
        """
        k = check_k(k)
        X = self._check_predict(X)
        return self._topk(X, min(k, self.n_labels_))

    def score_labels(self, X: Any, candidates: Any) -> csr_matrix:
        """The scores of given labels for each sample, stored exactly where `candidates` are.

        `candidates` has the forms of `Y`: an indicator `(n, n_labels)` with non-zero = asked, or
        a list of label-id lists. The scores are those that `predict_topk` would give if it looked
        everywhere. A label that it would not offer a sample even then, such as one that had no
        samples in training, gets 0, or the sample's lowest score if that is negative: it is never
        put before what is offered, and no score is infinite.

        >>> from umpteen import NearestCentroid
        >>> model = NearestCentroid().fit([[1, 1, 0], [1, 0, 0], [0, 0, 2]], [[0], [0, 1], [2]])
        >>> model.score_labels([[0, 1, 1]], [[0, 2]]).toarray().round(3)
        array([[0.271, 0.   , 0.707]], dtype=float32)
        """
        X = self._check_predict(X)
        asked = check_labels(
            candidates, n_samples=X.shape[0], n_labels=self.n_labels_, name="candidates"
        )
        scores = self._scores_of(X, asked)
        return csr_matrix((scores, asked.indices.copy(), asked.indptr.copy()), shape=asked.shape)

    def predict(self, X: Any) -> Any:
        """The labels of each sample: a sparse indicator `(n, n_labels)`.

        As many labels per sample as training samples had on average (at least one): a rule that
        needs no calibrated scores. A classifier that was fitted on a 1-D array answers with a
        1-D array of label ids, -1 where there is nothing to offer.
        """
        top = self.predict_topk(X, k=self._n_predicted())
        if self.single_label_:
            return top.labels[:, 0].astype(np.int64)
        indicator = top.to_csr(self.n_labels_)
        indicator.data = np.ones(len(indicator.data), np.int8)
        return indicator

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Precision at 1: how often the best label is a relevant one."""
        best = self.predict_topk(X, k=1).labels[:, 0]
        labels = check_labels(Y, n_samples=len(best))
        known = (best >= 0) & (best < labels.shape[1])
        hits = np.zeros(len(best))
        hits[known] = np.asarray(labels[np.flatnonzero(known), best[known]]).ravel()
        return float(np.average(hits, weights=sample_weight)) if len(hits) else 0.0

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model into the folder `path`; `umpteen.load(path)` gives it back.

        The folder is replaced as a whole: an interrupted save leaves the old model.
        """
        self._check_fitted()
        storage.save(self, path)

    @property
    def classes_(self) -> npt.NDArray[np.int64]:
        """The label ids, as scikit-learn calls them."""
        self._check_fitted()
        return np.arange(self.n_labels_)

    def _scores_of(self, X: Features, candidates: csr_matrix) -> npt.NDArray[np.float32]:
        """The score of each entry of `candidates`, for checked input."""
        scores = np.empty(candidates.nnz, np.float32)
        size = max(1, _BLOCK_SCORES // self.n_labels_)
        for first in range(0, X.shape[0], size):
            part = candidates[first : first + size]
            table = _table_of(self._every_label(X[first : first + size]), self.n_labels_)
            rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
            start = candidates.indptr[first]
            scores[start : start + part.nnz] = table[rows, part.indices]
        return scores

    def _every_label(self, X: Features) -> TopK:
        """All labels with their scores, none overlooked."""
        return self._topk(X, self.n_labels_)

    def _check_fit(self, X: Any, Y: Any) -> tuple[Features, csr_matrix]:
        """Checked `X` and `Y`; notes what every fitted classifier knows about them."""
        X, labels = self._check_fit_input(X, Y)
        self._forget()
        self.n_features_in_ = int(X.shape[1])
        self.n_labels_ = int(labels.shape[1])
        self.single_label_ = is_single_label(Y)
        labelled = int(np.count_nonzero(np.diff(labels.indptr)))
        self.labels_per_sample_ = 1 if self.single_label_ else max(1, round(labels.nnz / labelled))
        return X, labels

    def _check_fit_input(self, X: Any, Y: Any) -> tuple[Features, csr_matrix]:
        """Checked parameters, `X` and `Y`."""
        check_parameters(self)
        if Y is None:
            raise LabelsError(
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "fit(X, Y), where row i of Y holds the labels of row i of X"
            )
        X = check_features(X)
        if X.shape[0] == 0:
            raise FeaturesError(
                f"X has no rows: Found array with 0 sample(s) (shape={X.shape}) while a minimum "
                "of 1 is required"
            )
        labels = check_labels(Y, n_samples=X.shape[0])
        if labels.nnz == 0:
            raise LabelsError("Y has no relevant label at all; there is nothing to learn")
        return X, labels

    def _check_predict(self, X: Any) -> Features:
        self._check_fitted()
        return check_features(X, n_features=self.n_features_in_, model=type(self).__name__)

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet: call fit(X, Y) first, "
                "or umpteen.load a saved one"
            )

    def _forget(self) -> None:
        """Drop an earlier fit, so that an interrupted one leaves no mixture of both."""
        for name in self._fitted_names():
            self.__dict__.pop(name, None)

    @classmethod
    @cache  # asked at every prediction
    def _fitted_names(cls) -> frozenset[str]:
        declared = {name for base in cls.__mro__ for name in get_annotations(base)}
        return frozenset(
            name for name in declared if name.endswith("_") and not name.startswith("_")
        )

    def _n_predicted(self) -> int:
        self._check_fitted()
        return self.labels_per_sample_

    def __sklearn_is_fitted__(self) -> bool:
        return all(hasattr(self, name) for name in self._fitted_names())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags
