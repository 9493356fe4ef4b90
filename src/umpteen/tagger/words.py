"""Features as the words that they stand for."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from umpteen.errors import FeaturesError
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
        return f"#{feature}" if self._names is None else str(self._names[feature])

    @cached_property
    def _names(self) -> npt.NDArray[Any] | None:
        """Of all features, read once; None where columns have no names, as with hashing."""
        if not hasattr(self._vectorizer, "get_feature_names_out"):
            return None
        try:
            return np.asarray(self._vectorizer.get_feature_names_out())
        except FeaturesError:
            return None
