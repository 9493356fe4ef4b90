"""Features as the words that they stand for."""

from typing import Any

import numpy as np

from umpteen.text import Vectorizer


class Words:
    """Names features of any vectorizer.

    >>> Words(Vectorizer().fit(["a cat", "a cat"])).of_text("the cat")
    {2: 'cat'}
    """

    def __init__(self, vectorizer: Any) -> None:
        self._vectorizer = vectorizer

    def of_text(self, text: str) -> dict[int, str]:
        """The features that a text has, and their words."""
        if isinstance(self._vectorizer, Vectorizer):
            return self._vectorizer.named_features(text)
        features = self._vectorizer.transform([text]).indices.tolist()
        return {feature: self.name(feature) for feature in features}

    def name(self, feature: int) -> str:
        """The words of one feature; its number where nobody knows them."""
        if not hasattr(self._vectorizer, "get_feature_names_out"):
            return f"#{feature}"
        return str(np.asarray(self._vectorizer.get_feature_names_out())[feature])
