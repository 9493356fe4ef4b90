"""Tools for scikit-learn's model selection: scorers by name, and a list of all estimators."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from inspect import isabstract
from typing import Any

from sklearn.base import BaseEstimator

from umpteen import metrics
from umpteen.errors import MissingExtraError, ParameterError
from umpteen.validation import check_label_lists, check_labels

_METRICS: dict[str, Callable[..., float]] = {
    "precision": metrics.precision_at_k,
    "recall": metrics.recall_at_k,
    "nDCG": metrics.ndcg_at_k,
    "F1": metrics.f1_at_k,
}
_NAME = re.compile(r"([a-zA-Z0-9]+)@([1-9]\d{0,3})")
_NOT_AT_TOP = {"Vectorizer": "umpteen.text"}


@dataclass(frozen=True)
class Scorer:
    """A scorer for scikit-learn's tools: `scorer(model, X, Y)` returns a metric of the answers."""

    metric: str
    k: int

    def __call__(self, estimator: Any, X: Any, Y: Any) -> float:
        """Score a fitted classifier, a `Tagger`, or a `Pipeline` that ends in one of them."""
        if hasattr(estimator, "steps"):  # a Pipeline
            for _, step in estimator.steps[:-1]:
                X = X if step in (None, "passthrough") else step.transform(X)
            estimator = estimator.steps[-1][1]
        top = estimator.predict_topk(X, self.k)
        if hasattr(estimator, "label_names_"):
            lists = check_label_lists(Y, len(top))
            relevant = estimator.label_names_.with_unknown(lists).matrix(lists)
        else:
            relevant = check_labels(Y, n_samples=len(top))
        return float(_METRICS[self.metric](relevant, top, self.k))

    def __str__(self) -> str:
        return f"{self.metric}@{self.k}"


def scorer(name: str) -> Scorer:
    """Return a scorer such as "nDCG@5", for `scoring=` of scikit-learn's tools.

    The metrics are precision, recall, nDCG and F1, each at any k. The scorer uses the `k` best
    labels, so it needs no threshold, and works with sparse labels.

    >>> from umpteen import NearestCentroid
    >>> model = NearestCentroid().fit([[1, 0], [0, 1]], [[0], [1]])
    >>> scorer("precision@1")(model, [[2, 0]], [[0]])
    1.0
    """
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    if found is None or found[1] not in _METRICS:
        raise ParameterError(
            f"{name!r} is not a metric; expected {', '.join(_METRICS)} at some k, such as 'nDCG@5'"
        )
    return Scorer(found[1], int(found[2]))


def all_estimators(ability: type | None = None) -> list[tuple[str, type]]:
    """Return the names and classes of all public estimators, like scikit-learn's own function.

    `ability` is a class of `umpteen.base`, such as `AddsLabels`: only estimators with this ability
    are returned. Estimators whose optional dependency is not installed are left out.

    >>> [name for name, _ in all_estimators()][-2:]
    ['Tagger', 'Vectorizer']
    """
    package = import_module("umpteen")
    found = {}
    for name, home in {**package._HOME, **_NOT_AT_TOP}.items():
        try:
            value = getattr(import_module(home), name)
        except (MissingExtraError, ModuleNotFoundError):
            continue
        if isinstance(value, type) and issubclass(value, BaseEstimator) and not isabstract(value):
            found[name] = value
    return sorted(
        (name, one) for name, one in found.items() if ability is None or issubclass(one, ability)
    )
