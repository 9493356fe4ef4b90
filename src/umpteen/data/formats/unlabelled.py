"""Texts to be labelled: a file of any format, or with a text on each line."""

from collections.abc import Iterator
from inspect import signature
from typing import Any

from umpteen.data.formats.files import FORMATS, check_options, format_to_read
from umpteen.data.formats.records import Record, batches
from umpteen.data.formats.source import Source
from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError

LINES = "lines"


def format_to_label(source: Source, name: str | None) -> str:
    """Return the format asked for, or the one that the file shows, or else plain lines."""
    if name is not None:
        return name
    try:
        return format_to_read(source, None).name
    except DataFormatError:
        return LINES


def stream_unlabelled(
    source: Source, form: str, batch_size: int | None, options: dict[str, Any]
) -> Iterator[Samples]:
    """Yield samples in batches, and ignore their labels, whatever these look like."""
    source.format = form
    if form == LINES:
        lines = (line.removesuffix("\r") for _, line in source.lines())
        yield from batches(map(Record, lines), batch_size)
        return
    chosen = FORMATS[form]
    check_options(chosen, chosen.stream, options)
    if "labels_field" in signature(chosen.stream).parameters:
        options = options | {"labels_field": ""}
    yield from chosen.stream(source, batch_size, **options)
