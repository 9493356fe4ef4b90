"""Texts of samples and of labels as features of one vocabulary."""

from inspect import signature
from typing import Any

from scipy.sparse import csr_matrix

from umpteen.base import ExtremeClassifier
from umpteen.errors import ParameterError
from umpteen.tagger.upkeep import learn_words
from umpteen.text import Vectorizer
from umpteen.validation import as_csr, check_features


def read_texts(
    vectorizer: Any, classifier: ExtremeClassifier, texts: list[str], own_texts: list[str] | None
) -> tuple[csr_matrix, dict[str, csr_matrix]]:
    """Fit the vectorizer; the features of samples, and what `fit` takes besides.

    Words that only texts of labels have get columns of their own, beside those that are spare.
    They do not count for how rare words are in samples, nor for the length of a row: that cost
    a tenth of a point of precision.
    """
    if own_texts is None:
        return as_csr(check_features(vectorizer.fit_transform(texts))), {}
    if "label_features" not in signature(classifier.fit).parameters:
        raise ParameterError(
            f"{type(classifier).__name__} does not learn from texts of labels: leave out "
            "label_texts, or use a LabelTree"
        )
    if isinstance(vectorizer, Vectorizer) and vectorizer.hashing is None:
        words = {word for text in own_texts for word in vectorizer.words(text)}
        vectorizer.set_params(spare=vectorizer.spare + len(words))
    X = as_csr(check_features(vectorizer.fit_transform(texts)))
    learn_words(vectorizer, own_texts)
    return X, {"label_features": csr_matrix(vectorizer.transform(own_texts))}
