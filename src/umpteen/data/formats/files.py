"""Read, stream and write files of samples, each in its format."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import signature
from os import PathLike, fspath
from typing import Any

from umpteen.data.formats import annif, delimited, fasttext, jsonl, parquet, svmlight, xmc
from umpteen.data.formats.compression import Writable, compression_of_name, open_sink
from umpteen.data.formats.json_objects import is_array
from umpteen.data.formats.source import Readable, Source, open_source
from umpteen.data.samples import Samples, check_samples
from umpteen.errors import DataFormatError, ParameterError


@dataclass(frozen=True)
class Format:
    """A format: its name, how its files end, and the functions that read and write it."""

    name: str
    endings: tuple[str, ...]
    stream: Callable[..., Iterator[Samples]]
    write: Callable[..., None]


FORMATS = {
    each.name: each
    for each in (
        Format("xmc", (".xmc.txt", ".xmc"), xmc.stream, xmc.write),
        Format("svmlight", (".svm", ".svmlight", ".libsvm"), svmlight.stream, svmlight.write),
        Format("fasttext", (".ft", ".fasttext"), fasttext.stream, fasttext.write),
        Format("jsonl", (".jsonl", ".ndjson"), jsonl.stream, jsonl.write),
        Format("csv", (".csv",), delimited.stream, delimited.write_csv),
        Format("tsv", (".tsv",), delimited.stream, delimited.write_tsv),
        Format("parquet", (".parquet", ".pq"), parquet.stream, parquet.write),
        Format("annif", (), annif.stream, annif.write),
    )
}
_ROW = re.compile(rb"[ \t]*(\d+(,\d+)*[ \t]+)?(qid:\d+[ \t]+)?\d+:[-+.\d].*")
_ADVICE = "name a format with format=, one of " + ", ".join(FORMATS)


def read(
    path: Readable,
    *,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> Samples:
    """Read the samples of a file, or of an open binary file.

    The format is detected by the file's name, or else by its content; gzip, xz and zstd are
    unpacked. `options` are those of the format: `text_field`, `labels_field` (jsonl, csv, tsv,
    parquet; `labels_field=""` reads no labels), `group_field` (those, too: the name of each
    sample's group), `label_separator`, `quoted` (csv, tsv), `prefix` (fasttext),
    `zero_based`, `n_features`, `n_labels` (svmlight). A malformed file raises
    `DataFormatError`, with the line. `format="annif"` reads a corpus as `read_annif` does.

    >>> from io import BytesIO
    >>> samples = read(BytesIO(b"2 5 3\\n0,2 0:1 4:0.5\\n 3:2\\n"))
    >>> samples.X.toarray()
    array([[1. , 0. , 0. , 0. , 0.5],
           [0. , 0. , 0. , 2. , 0. ]], dtype=float32)
    >>> samples.Y.toarray()
    array([[1., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    (samples,) = _samples(path, format, None, options)
    return samples


def stream(
    path: Readable,
    *,
    batch_size: int = 10_000,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> Iterator[Samples]:
    """Yield the samples of a file in batches, in bounded memory; the arguments are as in `read`.

    >>> from io import BytesIO
    >>> [batch.texts for batch in stream(BytesIO(b"__label__x a\\nb\\nc"), batch_size=2)]
    [['a', 'b'], ['c']]
    """
    if batch_size is True or not isinstance(batch_size, int) or batch_size < 1:
        raise ParameterError(f"batch_size={batch_size!r} is not possible: use 1 or more")
    return _samples(path, format, batch_size, options)


def write(
    samples: Samples,
    path: Writable,
    *,
    format: str | None = None,  # noqa: A002
    **options: Any,
) -> None:
    """Write samples to a file, in the format and compression of its extension.

    Texts go to jsonl, csv, tsv, fasttext or parquet; matrices to xmc or svmlight. The file is
    replaced as a whole: an interrupted write leaves what was there before.

    >>> from io import BytesIO
    >>> file = BytesIO()
    >>> write(Samples(texts=["boil it"], labels=[["eggs"]]), file, format="fasttext")
    >>> file.getvalue()
    b'__label__eggs boil it\\n'
    """
    check_samples(samples)
    chosen = format_to_write(path, format)
    check_options(chosen, chosen.write, options)
    try:
        with open_sink(path) as file:
            chosen.write(samples, file, **options)
    except UnicodeEncodeError as problem:
        raise DataFormatError(
            f"a text cannot be written as UTF-8 ({problem.reason}): {problem.object!r:.80}"
        ) from None


def format_to_read(source: Source, name: str | None) -> Format:
    """Return the format asked for, or else the one that the name or the content shows."""
    found = _named(name) or format_of_name(source.name) or _of_content(source.head)
    if found is None and not source.head:
        raise source.error(f"the file is empty, its name says nothing: {_ADVICE}")
    if found is None:
        first_line = source.head.partition(b"\n")[0][:80].decode(errors="replace")
        raise source.error(
            f"the first line, {first_line!r}, looks like none of the formats: {_ADVICE}"
        )
    return found


def format_to_write(path: Any, name: str | None) -> Format:
    """Return the format asked for, or else the one that the name shows."""
    named = isinstance(path, str | PathLike)
    found = _named(name) or (format_of_name(fspath(path)) if named else None)
    if found is None:
        raise DataFormatError(
            f"{path if named else 'an open file'} does not end like any format: {_ADVICE}"
        )
    return found


def check_options(chosen: Format, function: Callable[..., Any], options: dict[str, Any]) -> None:
    """Refuse options that the format's function does not have."""
    allowed = list(signature(function).parameters)[2:]
    for name, value in options.items():
        is_text = isinstance(value, str) or (value is None and name != "text_field")
        if name.endswith(("_field", "_separator")) and not is_text:
            raise ParameterError(f"{name}={value!r} is not possible: use a single text")
        if name not in allowed:
            close = get_close_matches(name, allowed, n=1)
            raise ParameterError(
                f"{chosen.name} has no option {name!r}"
                + (f"; did you mean {close[0]!r}?" if close else "")
                + (f" (there are {', '.join(allowed)})" if allowed else " (it has none)")
            )


def _named(name: str | None) -> Format | None:
    if name is None:
        return None
    if name not in FORMATS:
        raise ParameterError(
            f"format={name!r} is not a known format; expected one of {', '.join(FORMATS)}"
        )
    return FORMATS[name]


def format_of_name(name: str) -> Format | None:
    """Return the format that a file name shows, compressed or not; None if it shows none.

    >>> format_of_name("train.xmc.txt.xz").name, format_of_name("notes.txt")
    ('xmc', None)
    """
    name = name.lower()
    if compression := compression_of_name(name):
        name = name.removesuffix(f".{compression}")
    return next((each for each in FORMATS.values() if name.endswith(each.endings)), None)


def _of_content(head: bytes) -> Format | None:
    """The format that a file's beginning shows.

    >>> _of_content(b"2 5 3\\n0,1 0:1 4:0.5\\n").name, _of_content(b"__label__a b\\n").name
    ('xmc', 'fasttext')
    """
    lines = head.removeprefix(b"\xef\xbb\xbf").splitlines()
    first_line = next((line for line in lines if line.strip() and line[:1] != b"#"), b"")
    words = {cell.strip(b'" ').lower() for cell in re.split(rb"[,;\t]", first_line)}
    shown = {
        "parquet": head.startswith(b"PAR1"),
        "xmc": xmc.HEADER.fullmatch(first_line),
        "svmlight": _ROW.fullmatch(first_line),
        "jsonl": first_line.lstrip().startswith(b"{") or is_array(head),
        "tsv": b"text" in words and b"\t" in first_line,
        "csv": b"text" in words,
        "fasttext": b"__label__" in head,
    }
    return next((FORMATS[name] for name, shows in shown.items() if shows), None)


def _samples(
    path: Readable, name: str | None, batch_size: int | None, options: dict[str, Any]
) -> Iterator[Samples]:
    if name == "annif" and annif.is_folder(path):
        yield from annif.stream_folder(path, batch_size, **options)
        return
    with open_source(path) as source:
        chosen = format_to_read(source, name)
        check_options(chosen, chosen.stream, options)
        source.format = chosen.name
        yield from chosen.stream(source, batch_size, **options)
