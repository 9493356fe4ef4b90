"""Files of texts and labels: the options they share, and stdin as one of them."""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from umpteen.cli.errors import UsageError

if TYPE_CHECKING:
    from umpteen.data import Samples

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="Texts with labels; - for stdin.", show_default=False)
]
Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE",
        help="Texts with labels; - for stdin; 'train/*.jsonl' for many.",
        show_default=False,
    ),
]
LabelTexts = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help='Label texts, one per line: {"label": "bread", "text": "..."}.'
    ),
]
EXAMPLE = '{"text": "How do I keep sourdough alive?", "labels": ["bread", "sourdough"]}'

_CSV_EXAMPLE = "How do I keep sourdough alive?,bread|sourdough"
_MOST_AT_ONCE = 1 << 16
_FORMATS = ("jsonl", "csv", "tsv", "fasttext", "parquet", "xmc", "svmlight", "annif", "lines")
Format = Enum("Format", {name: name for name in _FORMATS}, type=str)  # type: ignore[misc]


@dataclass(frozen=True)
class Reading:
    """How to read a file, as given by the options."""

    format: str | None
    options: dict[str, Any]

    def read(self, path: Path | list[Path], **more: Any) -> "Samples":
        """Read all samples of a file, of several files or of those that match a glob pattern."""
        from umpteen import data
        from umpteen.data.finding import check_numbering
        from umpteen.data.samples import join_samples

        files = expanded(path if isinstance(path, list) else [path])
        check_numbering(files, self.format, self.options)
        opened: list[Any] = [Stdin() if is_stdin(file) else file for file in files]
        files_read = [
            data.read(file, format=self.format, **self.options, **more) for file in opened
        ]
        return join_samples(files_read)

    def read_labelled(self, path: Path | list[Path], *, streamed: bool = False) -> "Samples":
        """Read all samples of a file, or of several; they must have labels.

        If they are `streamed`, texts stay in their files, and tasks read them there.
        """
        samples = self._surveyed(path) if streamed else self.read(path)
        if len(samples) == 0:
            raise UsageError(f"{named(path)} has no texts: expected {self._expected(path)}")
        if samples.labels is None and samples.Y is None:
            raise UsageError(
                f"{named(path)} has no labels: expected lines such as {EXAMPLE}, or the name "
                "of their column with --labels-column"
            )
        return samples

    def _surveyed(self, path: Path | list[Path]) -> "Samples":
        from umpteen.data import read_shards

        files = path if isinstance(path, list) else [path]
        if any(map(is_stdin, files)):
            raise UsageError(
                "--stream reads files several times, and stdin (-) only once: save it to a file"
            )
        return read_shards(files, format=self.format, **self.options)

    def _expected(self, path: Path | list[Path]) -> str:
        """Describe the lines of a file, in the format of the first."""
        from umpteen.data.formats.files import format_of_name

        shown = format_of_name(str(path[0] if isinstance(path, list) else path))
        if (self.format or (shown and shown.name)) == "csv":
            return f"'text,labels', then a line for each text, such as {_CSV_EXAMPLE}"
        return f"a line for each text, such as {EXAMPLE}"

    def read_labelled_texts(self, path: Path) -> "Samples":
        """Read samples with labels for a model that learned from texts."""
        samples = self.read_labelled(path)
        if samples.texts is None:
            raise UsageError(f"the model learned from texts, but {path} holds matrices")
        return samples

    def stream(self, path: Path, **more: Any) -> "Iterator[Samples]":
        """Yield the file in batches."""
        from umpteen import data

        return data.stream(path, format=self.format, **self.options, **more)


def expanded(files: list[Path]) -> list[Path]:
    """Return the files that are named or match a pattern; stdin and single names as they are."""
    from umpteen.data.finding import find_files, is_pattern

    if any(map(is_stdin, files)) and len(files) > 1:
        raise UsageError("- (stdin) cannot be combined with other files")
    if len(files) == 1 and not is_pattern(files[0]):
        return files
    return find_files(files)


def named(path: Path | list[Path]) -> str:
    """Return a file's name, or the first of several, for messages."""
    if isinstance(path, Path):
        return str(path)
    return str(path[0]) if len(path) == 1 else f"{path[0]}, with {len(path) - 1:,} other files,"


class Stdin:
    """Stdin without a buffer; Python's own would not notice Ctrl-C while it reads."""

    name = "stdin"

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes."""
        return os.read(stdin_descriptor(), min(size, _MOST_AT_ONCE))


def stdin_descriptor() -> int:
    """Return the file descriptor of stdin; raise an error if it is closed (`<&-`)."""
    if sys.stdin is None:
        raise UsageError("stdin (-) is closed: give the name of a file, or pipe texts into it")
    return sys.stdin.fileno()


def is_stdin(path: Path) -> bool:
    """Return whether `-` was given for a file."""
    return str(path) == "-"


def reads_file(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options for files; it gets them as one argument, `reading`."""

    @functools.wraps(command)
    def with_reading(**options: Any) -> None:
        chosen = {ours: options.pop(name) for name, ours in _LIBRARY_NAMES.items()}
        form = options.pop("format")
        given = {name: value for name, value in chosen.items() if value is not None}
        command(reading=Reading(form and form.value, given), **options)

    own = [
        parameter
        for parameter in inspect.signature(command, eval_str=True).parameters.values()
        if parameter.name != "reading"
    ]
    shared = inspect.signature(_shared, eval_str=True).parameters.values()
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in (*own, *shared)]
    with_reading.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_reading.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_reading


_LIBRARY_NAMES = {
    "text_column": "text_field",
    "labels_column": "labels_field",
    "label_separator": "label_separator",
    "zero_based": "zero_based",
}


def _shared(
    format: Annotated[  # noqa: A002
        Format | None,
        typer.Option(
            metavar="FORMAT",
            help="Format of the file, if its name does not tell: " + ", ".join(_FORMATS) + ".",
        ),
    ] = None,
    text_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of the texts, if not 'text'.")
    ] = None,
    labels_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of the labels, if not 'labels'.")
    ] = None,
    label_separator: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Separator of labels in a CSV cell, if not '|'."),
    ] = None,
    zero_based: Annotated[
        bool | None,
        typer.Option(
            "--zero-based/--one-based",
            help="Whether svmlight features start at 0 or 1; by default at 0 if there is a 0.",
        ),
    ] = None,
) -> None:
    """The options of files."""
