"""Texts of samples and of labels as features of one vocabulary, and the words of features."""

from collections.abc import Callable
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.base import StartsFromTokenVectors, is_able
from umpteen.errors import FeaturesError, ParameterError
from umpteen.linear import NameFeatures
from umpteen.shards import Texts
from umpteen.text import Vectorizer
from umpteen.text.morphology import unmarked
from umpteen.text.vocabulary import Vocabulary
from umpteen.validation import Features, as_csr, check_features


def read_texts(
    vectorizer: Any,
    texts: Texts,
    own_texts: list[str] | None,
    names: list[list[str]] | None = None,
) -> tuple[csr_matrix, dict[str, Any]]:
    """Fit the vectorizer; the features of samples, and what `fit` takes besides.

    Words that only texts of labels have get columns of their own, in addition to spare ones.
    They do not count for how rare words are in samples, nor for the length of a row: that cost
    a tenth of a point of precision.
    """
    if own_texts is None:
        return as_csr(check_features(vectorizer.fit_transform(texts))), {}
    if isinstance(vectorizer, Vectorizer) and vectorizer.hashing is None:
        words = {word for text in own_texts for word in vectorizer.words(text)}
        vectorizer.set_params(spare=vectorizer.spare + len(words))
    X = as_csr(check_features(vectorizer.fit_transform(texts)))
    learn_words(vectorizer, own_texts)
    more: dict[str, Any] = {"label_features": csr_matrix(vectorizer.transform(own_texts))}
    if names is not None:
        starts = np.cumsum([0, *map(len, names)])
        features = csr_matrix(vectorizer.transform(list(chain.from_iterable(names))))
        more["label_names"] = NameFeatures(features, starts)
    return X, more


def learn_words(vectorizer: Any, texts: list[str]) -> str | None:
    """Learn words that no training text had, where the vectorizer can.

    Returns what there was no room for, if anything.
    """
    if not hasattr(vectorizer, "learn_words"):
        return None
    vectorizer.learn_words(texts)
    word = _word_without_room(vectorizer, texts)
    if word is None:
        return None
    return (
        f"the vectorizer has no column left for new words such as {word!r}, which therefore do "
        "not count: fit again, with a higher Vectorizer(spare=...) if many are still to come"
    )


def _word_without_room(vectorizer: Any, texts: list[str]) -> str | None:
    if vectorizer.n_features_used < vectorizer.n_features_ or vectorizer.vocabulary_ is None:
        return None  # there is room, or hashing knows all words
    for text in texts:
        features = vectorizer.named_features(text).values()
        named = {word for names in features for word in names.split(" | ")}  # forms of one stem
        for word in vectorizer.words(text):
            if word not in named:
                return str(word)
    return None


def vectors_of_features(
    vectorizer: Any, classifier: Any, word_vectors: Callable[[list[str]], Any]
) -> Features:
    """Return a vector for each feature of the vectorizer, by its words; zeros for spare ones."""
    if not is_able(classifier, StartsFromTokenVectors):
        raise ParameterError(
            f"word_vectors has no effect on {type(classifier).__name__}, which does not start from "
            "vectors of words: use SiameseXML, also in an Ensemble, or leave word_vectors out"
        )
    if not hasattr(vectorizer, "get_feature_names_out"):
        raise ParameterError(
            f"word_vectors needs a vectorizer whose columns have names, such as Vectorizer(); "
            f"{type(vectorizer).__name__} has none"
        )
    if not callable(word_vectors):
        raise ParameterError(
            f"word_vectors is a {type(word_vectors).__name__}; expected a function from a list of "
            "words to an array with a vector for each, such as umpteen.text.pretrained_vectors"
        )
    words = [str(name) for name in vectorizer.get_feature_names_out()]
    if isinstance(vectorizer, Vectorizer):
        words = [unmarked(word) for word in words]
    return check_features(word_vectors(words), name="word_vectors(words)")


class Words:
    """Names features of any vectorizer.

    >>> Words(Vectorizer().fit(["a cat", "a cat"])).of_text("the cat")
    {2: 'cat'}
    """

    def __init__(self, vectorizer: Any) -> None:
        self.vectorizer = vectorizer

    def of_text(self, text: str) -> dict[int, str]:
        """Return the features that a text has, and their words."""
        if isinstance(self.vectorizer, Vectorizer):
            return self.vectorizer.named_features(text)
        features = csr_matrix(self.vectorizer.transform([text])).indices.tolist()
        return {feature: self.name(feature) for feature in features}

    def name(self, feature: int) -> str:
        """Return the words of one feature; its number where the words are not stored."""
        vocabulary = getattr(self.vectorizer, "vocabulary_", None)
        if isinstance(vocabulary, Vocabulary):  # of millions of features, a few are asked for
            if feature >= len(vocabulary.ngrams):
                return f"#{feature}"  # a spare column, in which only a damaged model has weights
            ngram = vocabulary.ngrams[feature]
            return " ".join(vocabulary.words[word] for word in ngram[ngram >= 0])
        return f"#{feature}" if self._names is None else str(self._names[feature])

    @cached_property
    def _names(self) -> npt.NDArray[Any] | None:
        """The names of all features of a given vectorizer; None if its columns have no names."""
        if not hasattr(self.vectorizer, "get_feature_names_out"):
            return None
        try:
            return np.asarray(self.vectorizer.get_feature_names_out())
        except FeaturesError:
            return None
