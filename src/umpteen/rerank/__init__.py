"""Answers of a tagger, reordered by a language model; only on request."""

from umpteen.rerank.reranker import Reranker
from umpteen.rerank.usage import Usage

__all__ = ["Reranker", "Usage"]
