"""Texts of samples and of labels as features of one vocabulary."""

from inspect import signature
from typing import Any

from scipy.sparse import csr_matrix

from umpteen.base import ExtremeClassifier
from umpteen.errors import ParameterError
from umpteen.validation import as_csr, check_features


def read_texts(
    vectorizer: Any, classifier: ExtremeClassifier, texts: list[str], own_texts: list[str] | None
) -> tuple[csr_matrix, dict[str, csr_matrix]]:
    """Fit the vectorizer; the features of samples, and what `fit` takes besides.

    Texts of labels count like samples for which words there are and how rare they are.
    """
    if own_texts is None:
        return as_csr(check_features(vectorizer.fit_transform(texts))), {}
    if "label_features" not in signature(classifier.fit).parameters:
        raise ParameterError(
            f"{type(classifier).__name__} does not learn from texts of labels: leave out "
            "label_texts, or use a LabelTree"
        )
    every = vectorizer.fit_transform([*texts, *filter(str.strip, own_texts)])
    X = as_csr(check_features(every))[: len(texts)]
    return X, {"label_features": csr_matrix(vectorizer.transform(own_texts))}
