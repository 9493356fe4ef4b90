"""Features as the words that they stand for."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.errors import FeaturesError
from umpteen.text import Vectorizer
from umpteen.text.vocabulary import Vocabulary


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
            run = vocabulary.runs[feature]
            return " ".join(vocabulary.words[word] for word in run[run >= 0])
        return f"#{feature}" if self._names is None else str(self._names[feature])

    @cached_property
    def _names(self) -> npt.NDArray[Any] | None:
        """Of all features of somebody else's vectorizer; None where columns have no names."""
        if not hasattr(self.vectorizer, "get_feature_names_out"):
            return None
        try:
            return np.asarray(self.vectorizer.get_feature_names_out())
        except FeaturesError:
            return None
