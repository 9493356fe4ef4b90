r"""fastText lines: `__label__a __label__b some text`.

As fastText itself does, any word that begins with the prefix is a label, wherever it stands.
Every line is a sample, an empty one too, so that samples and lines keep in step.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from umpteen.data.formats.records import Record, batches, records_of
from umpteen.data.formats.source import Source
from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError, ParameterError

# What fastText takes for the end of a word; other Unicode spaces are part of words.
_SPACE = r"\x00\t\x0b\x0c\r "


def stream(source: Source, batch_size: int | None, prefix: str = "__label__") -> Iterator[Samples]:
    """Return samples of the lines; `prefix` marks a word as a label."""
    return batches(_records(source, prefix), batch_size)


def write(samples: Samples, file: BinaryIO, prefix: str = "__label__") -> None:
    """Write one line per sample; ids are left out.

    What the format cannot say is refused: line ends or label-like words in texts, empty label
    names and spaces in them.
    """
    label = _label_pattern(prefix)
    for i, record in enumerate(records_of(samples, "fasttext")):
        words = [prefix + name for name in record.labels or []]
        _check(record, words, label, i)
        file.write((" ".join([*words, record.text]) + "\n").encode())


def _records(source: Source, prefix: str) -> Iterator[Record]:
    label = _label_pattern(prefix)
    for _, line in source.lines():
        line = line.removesuffix("\r")
        yield Record(label.sub("", line), label.findall(line))


def _label_pattern(prefix: str) -> re.Pattern[str]:
    if not prefix or re.search(f"[{_SPACE}\n]", prefix):
        raise ParameterError(f"prefix={prefix!r} marks no word; use for example '__label__'")
    return re.compile(rf"(?<![^{_SPACE}]){re.escape(prefix)}([^{_SPACE}]+) ?")


def _check(record: Record, words: list[str], label: re.Pattern[str], i: int) -> None:
    for word in words:
        if "\n" in word or not label.fullmatch(word):
            raise DataFormatError(
                f"sample {i} has a label that fastText lines cannot hold (with spaces): "
                f"{word!r}; replace the spaces, or write jsonl"
            )
    if "\n" in record.text or "\r" in record.text:
        raise DataFormatError(
            f"the text of sample {i} has several lines, fastText's have one: join them, "
            "or write jsonl"
        )
    if label.search(record.text):
        raise DataFormatError(f"the text of sample {i} holds what fastText would take for a label")
