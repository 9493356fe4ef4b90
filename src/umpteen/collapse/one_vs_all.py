"""Label sets by one yes-or-no classifier per label: the baseline of `NearestSet`."""

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import expit, logit
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from umpteen.collapse.thresholds import f1_threshold, subset_threshold
from umpteen.errors import LabelsError, NotFittedError
from umpteen.metrics.label_sets import dense_features
from umpteen.storage import Shape, Within, storable
from umpteen.validation import check_labels, check_parameters

FloatArray = npt.NDArray[np.float64]

_BLOCK_SCORES = 2**21  # 16 MB
_BLOCK_LABELS = 64
_SCORES = (-700.0, 30.0)  # of thresholds: beyond, probabilities are 0 or 1 and tell nothing apart


def _from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    if "bias_" in state:
        state["bias_"] = state["bias_"].astype(np.float64)


@storable(version=2, upgrades={1: _from_1})
class OneVsAll(BaseEstimator):
    """Logistic regression for each label on given features, and one threshold for all.

    Parameters
    ----------
    threshold : probability from which a label is in the answer: a number, such as 0.5, or chosen on
        samples: "subset" makes the most sets exactly right, "f1" makes micro-F1 best.
    at_least_one : whether a sample with no label above the threshold gets its best one.
    cost : penalty of errors relative to that of weights, like scikit-learn's `C`.
    max_iter : maximum number of iterations of the solver.

    >>> features = np.array([[1.0, 0], [0, 1], [1, 1], [0, 0]])
    >>> model = OneVsAll(cost=100.0).fit(features, [[0], [1], [0, 1], []])
    >>> model.predict(features).toarray().astype(int).tolist()
    [[1, 0], [0, 1], [1, 1], [0, 0]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [StrOptions({"subset", "f1"}), Interval(Real, 0, 1, closed="neither")],
        "at_least_one": ["boolean"],
        "cost": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    weight_: Annotated[npt.NDArray[np.float32], Shape("labels", "dim")]
    bias_: Annotated[FloatArray, Shape("labels")]
    threshold_: Annotated[float, Within(0, 1.5)]  # a probability

    def __init__(
        self,
        *,
        threshold: str | float = "subset",
        at_least_one: bool = False,
        cost: float = 1.0,
        max_iter: int = 100,
    ) -> None:
        self.threshold = threshold
        self.at_least_one = at_least_one
        self.cost = cost
        self.max_iter = max_iter

    def fit(self, features: Any, Y: Any, validation: tuple[Any, Any] | None = None) -> Self:
        """Train all classifiers; the threshold is chosen on `validation`, `(features, Y)`.

        Without it, the threshold is chosen on the training samples.
        """
        check_parameters(self)
        features = dense_features(features)
        labels = check_labels(Y, n_samples=len(features))
        if not len(features):
            raise LabelsError("there are no samples to learn from")
        self._fit_weights(features, labels)
        if validation is not None:
            features = dense_features(validation[0], n_features=features.shape[1])
            labels = check_labels(validation[1], n_samples=len(features), n_labels=labels.shape[1])
        self.threshold_ = self._choose(features, labels)
        return self

    def predict(self, features: Any) -> csr_matrix:
        """Return the label set of each sample, an indicator `(n, n_labels)`."""
        if not hasattr(self, "threshold_"):
            raise NotFittedError("this OneVsAll was not fitted yet: call fit first")
        features = dense_features(features, n_features=self.weight_.shape[1])
        counts, columns = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)]
        for _, scores in self._score_blocks(features):
            chosen = scores >= logit(self.threshold_)
            if self.at_least_one:
                chosen[np.arange(len(chosen)), scores.argmax(axis=1)] |= ~chosen.any(axis=1)
            counts.append(chosen.sum(axis=1))
            columns.append(np.nonzero(chosen)[1])
        indices = np.concatenate(columns).astype(np.int32)
        indptr = np.cumsum(np.concatenate(counts)).astype(np.int32)
        shape = (len(features), len(self.bias_))
        return csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=shape)

    def _fit_weights(self, features: FloatArray, labels: csr_matrix) -> None:
        n, d = features.shape
        center = features.mean(axis=0)  # far from it, descent would not end
        features = features - center
        size = float(np.sqrt((features**2).mean())) or 1.0  # descent likes numbers near 1
        inputs = np.column_stack([features / size, np.ones(n)])
        self.weight_ = np.empty((labels.shape[1], d), np.float32)
        self.bias_ = np.empty(labels.shape[1])
        columns = labels.tocsc()
        for start in range(0, labels.shape[1], _BLOCK_LABELS):
            block = slice(start, start + _BLOCK_LABELS)
            targets = 2 * columns[:, block].toarray().astype(np.float64) - 1
            solution = _logistic(inputs, targets, 1 / (self.cost * size**2), self.max_iter)
            self.weight_[block] = solution[:, :d] / size
            self.bias_[block] = solution[:, d] - self.weight_[block].astype(np.float64) @ center

    def _choose(self, features: FloatArray, labels: csr_matrix) -> float:
        if not isinstance(self.threshold, str):
            return float(self.threshold)
        blocks = (
            (labels[rows].toarray() > 0, scores) for rows, scores in self._score_blocks(features)
        )
        choose = subset_threshold if self.threshold == "subset" else f1_threshold
        return float(expit(np.clip(choose(blocks, self.at_least_one), *_SCORES)))

    def _score_blocks(self, features: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        size = max(_BLOCK_SCORES // max(len(self.bias_), 1), 1)
        for start in range(0, len(features), size):
            rows = slice(start, start + size)
            yield rows, features[rows] @ self.weight_.T.astype(np.float64) + self.bias_


def _logistic(inputs: FloatArray, targets: FloatArray, penalty: float, max_iter: int) -> FloatArray:
    """Weights `(labels, inputs)` of all labels at once; the last input, a one, is not penalized."""
    shape = targets.shape[1], inputs.shape[1]
    weigh = np.full(shape[1], penalty)
    weigh[-1] = 0

    def objective(values: FloatArray) -> tuple[float, FloatArray]:
        weights = values.reshape(shape)
        margins = targets * (inputs @ weights.T)
        loss = np.logaddexp(0, -margins).sum() + 0.5 * (weigh * weights**2).sum()
        slope = (-targets * expit(-margins)).T @ inputs + weigh * weights
        return float(loss), slope.ravel()

    found = minimize(
        objective, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B",
        options={"maxiter": max_iter, "gtol": 1e-4 * len(inputs) ** 0.5},
    )  # fmt: skip
    return np.asarray(found.x.reshape(shape))
