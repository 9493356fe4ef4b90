"""`umpteen convert`."""

import io
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from umpteen.cli.errors import UsageError, say
from umpteen.cli.reading import File, Format, Reading, is_stdin, reads_file

if TYPE_CHECKING:
    from umpteen.data import Samples

BATCH = 10_000
_BY_LINE = ("jsonl", "fasttext", "csv", "tsv")  # the others know their size before their first line


@reads_file
def convert(
    file: File,
    output: Annotated[
        Path, typer.Argument(metavar="OUTPUT", help="File to write; - for stdout, with --to.")
    ],
    reading: Reading,
    to: Annotated[
        Format | None,
        typer.Option(metavar="FORMAT", help="Format of OUTPUT, if its name does not tell."),
    ] = None,
) -> None:
    """Convert a file of texts and labels to another format.

    \b
    Examples:
      umpteen convert train.csv train.jsonl
      umpteen convert train.tsv train.jsonl.gz --text-column title --labels-column tags
      umpteen convert train.jsonl - --to fasttext
    \b
    Extensions tell the formats: .jsonl, .csv, .tsv, .ft (fastText), .parquet, and for matrices
    .xmc.txt and .svm; each also with .gz, .xz or .zst. Large files are converted in batches.
    """
    from umpteen.data.formats.compression import open_sink

    form = _format_to_write(output, to)
    target: Any = sys.stdout.buffer if is_stdin(output) else output
    n_samples = 0
    with open_sink(target) as sink:
        for number, samples in enumerate(_parts(file, reading, form)):
            _write(samples, sink, form, with_header=number == 0)
            n_samples += len(samples)
    sys.stdout.flush()  # an error here comes before a word of success
    say(f"{n_samples:,} samples")


def _format_to_write(output: Path, to: Format | None) -> str:
    from umpteen.data.formats.files import format_to_write
    from umpteen.errors import DataFormatError

    try:
        return format_to_write(_Unnamed() if is_stdin(output) else output, to and to.value).name
    except DataFormatError as problem:
        raise UsageError(str(problem).replace("format=", "--to")) from None


class _Unnamed:
    """A file whose name tells nothing."""


def _parts(file: Path, reading: Reading, form: str) -> "Iterator[Samples]":
    """The file in batches that can be written one after another."""
    if is_stdin(file) or form not in _BY_LINE:
        yield reading.read(file)
        return
    labelled, identified = False, True
    for samples in reading.stream(file, batch_size=BATCH):  # a first look
        labelled |= samples.labels is not None
        identified &= samples.ids is not None
    seen = 0
    for samples in reading.stream(file, batch_size=BATCH):
        seen += len(samples)
        yield _alike(samples, labelled, identified)
    if not seen:
        yield reading.read(file)


def _alike(samples: "Samples", labelled: bool, identified: bool) -> "Samples":
    """With labels if any part has them, with ids if all have them: as in a file read whole."""
    labels = samples.labels
    if labelled and labels is None and samples.texts is not None:
        labels = [[] for _ in samples.texts]
    return replace(samples, labels=labels, ids=samples.ids if identified else None)


def _write(samples: "Samples", sink: Any, form: str, with_header: bool) -> None:
    from umpteen.data import write

    if with_header or form not in ("csv", "tsv"):
        write(samples, sink, format=form)
        return
    part = io.BytesIO()
    write(samples, part, format=form)
    sink.write(part.getvalue().partition(b"\n")[2])
