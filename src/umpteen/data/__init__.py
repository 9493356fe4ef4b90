"""Data: files, and what they hold."""

from umpteen.data.formats import read, read_label_texts, stream, write
from umpteen.data.samples import Samples

__all__ = ["Samples", "read", "read_label_texts", "stream", "write"]
