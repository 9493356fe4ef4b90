"""Texts to be labelled: from a file, or from stdin as they arrive."""

import os
import select
from collections.abc import Iterator
from io import BytesIO
from itertools import chain
from pathlib import Path

from umpteen.cli.reading import Reading, is_stdin, stdin_descriptor
from umpteen.data import Samples
from umpteen.data.formats.compression import compression_of_content
from umpteen.data.formats.json_objects import is_array
from umpteen.data.formats.source import Source, open_source, whole_lines
from umpteen.data.formats.unlabelled import LINES, format_to_label, stream_unlabelled
from umpteen.errors import DataFormatError

_TEXTS = 1000  # of a file at a time
_READ, _MOST = 1 << 16, 1 << 20  # bytes of stdin: per read, and at a time
_LINE_BY_LINE = (LINES, "jsonl", "fasttext")


def stream_texts(path: Path, reading: Reading) -> Iterator[Samples]:
    """Yield texts in batches; lines of stdin are yielded as soon as they arrive.

    If no format is recognised, every line is a text. Labels are ignored, whatever they look like,
    so the output of `predict` can be its input.
    """
    if is_stdin(path):
        yield from _stream_stdin(stdin_descriptor(), reading)
        return
    with open_source(path) as source:
        yield from stream_unlabelled(
            source, format_to_label(source, reading.format), _TEXTS, reading.options
        )


def _stream_stdin(stdin: int, reading: Reading) -> Iterator[Samples]:
    arriving = _arriving(stdin)
    start = next(arriving, b"")
    if compression_of_content(start):
        source = Source("stdin", _Blocks(chain([start], arriving)))
        yield from stream_unlabelled(
            source, format_to_label(source, reading.format), _TEXTS, reading.options
        )
        return
    blocks = whole_lines(chain([start], arriving), Source("stdin", BytesIO()).too_long)
    first = next(blocks, b"")
    form = format_to_label(Source("stdin", BytesIO(first)), reading.format)
    if form not in _LINE_BY_LINE or (form == "jsonl" and is_array(first)):
        source = Source("stdin", _Blocks(chain([first], blocks)))
        yield from stream_unlabelled(source, form, _TEXTS, reading.options)
        return
    n_lines = 0
    for block in chain([first], blocks):
        yield from stream_unlabelled(_Later(block, n_lines), form, None, reading.options)
        n_lines += block.count(b"\n")


def _arriving(stdin: int) -> Iterator[bytes]:
    """What is there, and waiting only where nothing is."""
    ended = False
    while not ended and (block := os.read(stdin, _READ)):
        while not ended and len(block) < _MOST and _is_ready(stdin):
            more = os.read(stdin, _READ)
            block, ended = block + more, not more
        yield block


def _is_ready(stdin: int) -> bool:
    return os.name == "posix" and bool(select.select([stdin], [], [], 0)[0])


class _Later(Source):
    """Some lines of stdin that come after others."""

    def __init__(self, block: bytes, n_lines_before: int) -> None:
        super().__init__("stdin", BytesIO(block))
        self._n_lines_before = n_lines_before

    def error(self, problem: str, line: int | None = None) -> DataFormatError:
        return super().error(problem, None if line is None else line + self._n_lines_before)


class _Blocks:
    """A file to read from, out of its blocks."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, b""

    def read(self, size: int) -> bytes:
        self._rest = self._rest or next(self._blocks, b"")
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken
