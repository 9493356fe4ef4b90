"""JSON objects of a file: one per line, or all in one array `[{...}, {...}]`."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from umpteen.data.formats.source import Source
from umpteen.errors import DataFormatError


class Repeating(dict[str, Any]):
    """A JSON object with duplicate names; it holds the last value of each."""

    repeated: frozenset[str]


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    item = dict(pairs)
    if len(item) == len(pairs):
        return item
    repeating = Repeating(item)
    repeating.repeated = frozenset(
        name for name, n in Counter(n for n, _ in pairs).items() if n > 1
    )
    return repeating


# Numbers stay as they are written: a label 1.50 is called "1.50". NaN is how some write null.
_decoder = json.JSONDecoder(
    parse_int=str,
    parse_float=str,
    parse_constant=lambda name: None,
    object_pairs_hook=_object_of,
)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_ARRAY = re.compile(rb"(\xef\xbb\xbf)?\s*\[\s*([{\]]|\Z)")
_ARRAY_BEGIN, _ARRAY_END = re.compile(r"\s*\[\s*"), re.compile(r"\s*\]\s*\Z")
_COMMA = re.compile(r"\s*(,\s*|(?=\]))")
_LARGEST_ARRAY = 1 << 30  # characters, as all of them are in memory


def objects(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects, each with the number of its line; blank lines are ignored."""
    if is_array(source.head):
        yield from _of_array(source)
        return
    for number, line in source.lines():
        if line and not line.isspace():
            yield number, _object(source, number, line)


def check_once(source: Source, number: int, item: dict[str, Any], *fields: str | None) -> None:
    """Raise an error if the object has one of these fields more than once."""
    for field in fields:
        if isinstance(item, Repeating) and field in item.repeated:
            raise source.error(f"the object has {field!r} more than once; keep one", number)


def is_array(head: bytes) -> bool:
    """Return whether a file that begins so holds one array of objects.

    >>> is_array(b'[{"text": "a"}]'), is_array(b'{"text": "[{"}'), is_array(b"[solved] a text")
    (True, False, False)
    """
    return _ARRAY.match(head) is not None


def _of_array(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    text = _whole(source)
    start = _ARRAY_BEGIN.match(text).end()  # type: ignore[union-attr]
    number = 1 + text.count("\n", 0, start)
    while not _ARRAY_END.match(text, start):
        try:
            end = _decoder.raw_decode(text, start)[1]
        except (ValueError, RecursionError) as problem:
            raise _refused(source, getattr(problem, "lineno", number), problem) from None
        yield number, _object(source, number, text[start:end])
        comma = _COMMA.match(text, end)
        if comma is None:
            raise source.error("the array has no end, or no comma after this object", number)
        number += text.count("\n", start, comma.end())
        start = comma.end()


def _whole(source: Source) -> str:
    lines, size = [], 0
    for _, line in source.lines():
        lines.append(line)
        size += len(line)
        if size > _LARGEST_ARRAY:
            raise source.error("the array is too long to hold: write an object per line, as JSONL")
    return "\n".join(lines)


def _object(source: Source, number: int, text: str) -> dict[str, Any]:
    try:
        item = _decoder.decode(text)
        if _SURROGATE.search(text):  # half of a pair is not text
            json.dumps(item, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as problem:
        raise _refused(source, number, problem) from None
    if not isinstance(item, dict):
        raise source.error(f"{text[:40]!r} is not a JSON object; expected {{...}}", number)
    return item


def _refused(source: Source, number: int, problem: Exception) -> DataFormatError:
    if isinstance(problem, RecursionError):
        return source.error("nested too deeply", number)
    if isinstance(problem, json.JSONDecodeError):  # of a line, it says "line 1"
        problem = ValueError(f"{problem.msg} in column {problem.colno:,}")
    return source.error(f"{problem}; expected a JSON object on each line", number)
