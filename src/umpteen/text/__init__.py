"""Text: from words to sparse features, or to the vectors of a pretrained encoder."""

from umpteen.text.pretrained import pretrained_vectors
from umpteen.text.sentences import SentenceVectors
from umpteen.text.vectorizer import Vectorizer

__all__ = ["SentenceVectors", "Vectorizer", "pretrained_vectors"]
