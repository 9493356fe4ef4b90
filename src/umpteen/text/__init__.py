"""Text: from words to sparse features."""

from umpteen.text.vectorizer import Vectorizer

__all__ = ["Vectorizer"]
