"""Which formats there are, and which one a file is in."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from inspect import signature
from os import PathLike, fspath
from typing import Any

from umpteen.data.formats import delimited, fasttext, jsonl, parquet, svmlight, xmc
from umpteen.data.formats.compression import compression_of_name
from umpteen.data.formats.json_objects import is_array
from umpteen.data.formats.source import Source
from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError, ParameterError


@dataclass(frozen=True)
class Format:
    """A format: its name, how its files end, and the functions that read and write it."""

    name: str
    endings: tuple[str, ...]
    stream: Callable[..., Iterator[Samples]]
    write: Callable[..., None]


FORMATS = {
    known.name: known
    for known in (
        Format("xmc", (".xmc.txt", ".xmc"), xmc.stream, xmc.write),
        Format("svmlight", (".svm", ".svmlight", ".libsvm"), svmlight.stream, svmlight.write),
        Format("fasttext", (".ft", ".fasttext"), fasttext.stream, fasttext.write),
        Format("jsonl", (".jsonl", ".ndjson"), jsonl.stream, jsonl.write),
        Format("csv", (".csv",), delimited.stream, delimited.write_csv),
        Format("tsv", (".tsv",), delimited.stream, delimited.write_tsv),
        Format("parquet", (".parquet", ".pq"), parquet.stream, parquet.write),
    )
}
_ROW = re.compile(rb"[ \t]*(\d+(,\d+)*[ \t]+)?(qid:\d+[ \t]+)?\d+:[-+.\d].*")
_ADVICE = "name a format with format=, one of " + ", ".join(FORMATS)


def format_to_read(source: Source, name: str | None) -> Format:
    """Return the format asked for, or else the one that the name or the content shows."""
    found = _named(name) or _of_name(source.name) or _of_content(source.head)
    if found is None and not source.head:
        raise source.error(f"the file is empty, its name says nothing: {_ADVICE}")
    if found is None:
        first_line = source.head.partition(b"\n")[0][:80].decode(errors="replace")
        raise source.error(f"the first line, {first_line!r}, is of no known format: {_ADVICE}")
    return found


def format_to_write(path: Any, name: str | None) -> Format:
    """Return the format asked for, or else the one that the name shows."""
    named = isinstance(path, str | PathLike)
    found = _named(name) or (_of_name(fspath(path)) if named else None)
    if found is None:
        raise DataFormatError(f"{path if named else 'an open file'} has no known ending: {_ADVICE}")
    return found


def check_options(chosen: Format, function: Callable[..., Any], options: dict[str, Any]) -> None:
    """Refuse options that the format's function does not have."""
    known = list(signature(function).parameters)[2:]
    for name in options:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            raise ParameterError(
                f"{chosen.name} has no option {name!r}"
                + (f"; did you mean {close[0]!r}?" if close else "")
                + (f" (there are {', '.join(known)})" if known else " (it has none)")
            )


def _named(name: str | None) -> Format | None:
    if name is None:
        return None
    if name not in FORMATS:
        raise ParameterError(f"format={name!r} is not known; expected one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _of_name(name: str) -> Format | None:
    """The format of a file name, compressed or not.

    >>> _of_name("train.xmc.txt.xz").name, _of_name("notes.txt")
    ('xmc', None)
    """
    name = name.lower()
    if compression := compression_of_name(name):
        name = name.removesuffix(f".{compression}")
    return next((known for known in FORMATS.values() if name.endswith(known.endings)), None)


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
