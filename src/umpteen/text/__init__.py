"""Text: from words to sparse features, or to the vectors of a pretrained encoder."""

from umpteen.text.pretrained import pretrained_vectors
from umpteen.text.sentences import SentenceVectors
from umpteen.text.tokens import Tokens
from umpteen.text.vectorizer import Vectorizer

__all__ = ["SentenceVectors", "Tokens", "Vectorizer", "pretrained_vectors"]
