"""Readers and writers of data files, plain or compressed, whole or streamed.

One file per format; `files` tells which one a file is in.
"""

from umpteen.data.formats.files import read, stream, write
from umpteen.data.formats.jsonl import read_label_texts

__all__ = ["read", "read_label_texts", "stream", "write"]
