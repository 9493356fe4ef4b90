"""A language model puts the answers of a tagger into order; never by default."""

from umpteen.rerank.reranker import Reranker
from umpteen.rerank.usage import Usage

__all__ = ["Reranker", "Usage"]
