"""`ExtremeClassifier`: what every method is."""

from abc import ABC, abstractmethod
from functools import cache
from inspect import get_annotations
from os import PathLike
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags

from umpteen import scratch, storage
from umpteen.base.abilities import LearnsFromLabelFeatures
from umpteen.base.topk import TopK
from umpteen.errors import FeaturesError, LabelsError, NotFittedError, ParameterError
from umpteen.validation import (
    Features,
    check_features,
    check_k,
    check_labels,
    check_parameters,
    check_rows,
    is_single_label,
)

_BLOCK_SCORES = 2**22  # scores of all labels held at a time
_MOST_PREDICTED = 2**16  # labels of a sample in `predict`


class ExtremeClassifier(ClassifierMixin, BaseEstimator, ABC):
    """The base of all methods: a scikit-learn classifier for very many labels.

    **Words.** `X` are features of n samples, sparse or dense, `(n, d)`. `Y` are their relevant
    labels: a sparse or dense indicator `(n, n_labels)` with non-zero = relevant, a list of
    label-id lists, or a 1-D array with one label id per sample. Labels are numbered from 0.

    **Edge cases.** A sample may have no features or no labels, a label may have no samples. Such a
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
    labels_per_sample_: Annotated[int, storage.Within(1, _MOST_PREDICTED + 1)]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        storage.storable(cls)

    @abstractmethod
    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from samples and their labels; returns the classifier itself."""

    def fit_validated(
        self, X: Any, Y: Any, validation: Any, k: int = 20, label_features: Any = None
    ) -> TopK:
        """Fit on all samples, and return unbiased answers to the validation split.

        `validation` marks that split, with one boolean for each row of `X`. The answers are in the
        order of the rows, and come from a model that was not trained on these samples, so that
        probabilities, thresholds and weights can be learned from them. By default, this fits two
        models; some methods do both for less.
        """
        X, k = check_features(X), check_k(k)
        is_validation = check_rows(validation, X.shape[0], "validation")
        more = {} if label_features is None else {"label_features": label_features}
        if more and not isinstance(self, LearnsFromLabelFeatures):
            raise ParameterError(f"{type(self).__name__} does not learn from label features")
        labels = check_labels(Y, n_samples=X.shape[0])
        trial = clone(self).fit(scratch.rows_at(X, ~is_validation), labels[~is_validation], **more)
        top: TopK = trial.predict_topk(X[is_validation], k)
        self.fit(X, Y, **more)
        return top

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

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; a fitted classifier refuses values that it could not predict with."""
        before = self.get_params(deep=False)
        super().set_params(**parameters)
        if self.__sklearn_is_fitted__():
            try:
                check_parameters(self)
            except ParameterError:
                super().set_params(**before)
                raise
        return self

    def score_labels(self, X: Any, candidates: Any) -> csr_matrix:
        """Return the scores of given labels for each sample, stored exactly where `candidates` are.

        `candidates` has the forms of `Y`: an indicator `(n, n_labels)` whose non-zeros are the
        labels to score, or a list of label-id lists. The scores are those of `predict_topk` with an
        exhaustive search. A label that the model could never predict for a sample, such as one
        without training samples, gets 0, or the sample's lowest score if that is negative. So it
        never ranks before a label that can be predicted, and no score is infinite.

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
        """Return the labels of each sample: a sparse indicator `(n, n_labels)`.

        Each sample gets as many labels as training samples had on average, at least one; this needs
        no calibrated scores. A classifier that was fitted on a 1-D array returns a 1-D array of
        label ids, with -1 if a sample has no candidates.
        """
        top = self.predict_topk(X, k=self._n_predicted())
        if self.single_label_:
            return top.labels[:, 0].astype(np.int64)
        indicator = top.to_csr(self.n_labels_)
        indicator.data = np.ones(len(indicator.data), np.int8)
        return indicator

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Return the precision at 1: how often the best label is a relevant one."""
        best = self.predict_topk(X, k=1).labels[:, 0]
        labels = check_labels(Y, n_samples=len(best))
        present = (best >= 0) & (best < labels.shape[1])
        hits = np.zeros(len(best))
        hits[present] = np.asarray(labels[np.flatnonzero(present), best[present]]).ravel()
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
        mean = min(round(labels.nnz / labelled), _MOST_PREDICTED)
        self.labels_per_sample_ = 1 if self.single_label_ else max(1, mean)
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
        labels = check_labels(Y, n_samples=X.shape[0], n_features=X.shape[1])
        if labels.nnz == 0:
            raise LabelsError("Y has no relevant label at all; there is nothing to learn")
        return X, labels

    def _check_predict(self, X: Any) -> Features:
        self._check_fitted()
        return check_features(X, n_features=self.n_features_in_, model=type(self).__name__)

    def _check_one(self, x: Any) -> Features:
        """Return the one row of `x`, checked."""
        row = self._check_predict(x)
        if row.shape[0] != 1:
            raise FeaturesError(f"x has {row.shape[0]:,} rows; expected one sample")
        return row

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


def _table_of(top: TopK, n_labels: int) -> npt.NDArray[np.float32]:
    """(samples, n_labels): scores, and for what is not offered 0 or the lowest if negative."""
    given = top.labels >= 0
    lowest = np.min(top.scores, axis=1, initial=0, where=given, keepdims=True)
    table = np.repeat(lowest, n_labels, axis=1)
    table[np.nonzero(given)[0], top.labels[given]] = top.scores[given]
    return table
