"""Nearest labels: exact, and approximate in logarithmic time (HNSW)."""

from umpteen.search.index import LabelIndex

__all__ = ["LabelIndex"]
