"""A file being read: its bytes, decompressed, in whole lines, and where an error is."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from umpteen.data.formats.compression import (
    DAMAGED,
    compression_of_content,
    compression_of_name,
    decompressed,
)
from umpteen.errors import DataFormatError, DatasetNotFoundError, ParameterError
from umpteen.limits import limit_advice, max_line_bytes

Readable: TypeAlias = "str | PathLike[str] | BinaryIO"

_HEAD = 1 << 16
_BLOCK = 1 << 22
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPREADSHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")  # .xlsx and .ods are zip archives; .xls


class Source:
    """The content of one file; `head` is its beginning, looked at before anything is read."""

    def __init__(self, name: str, file: Any, path: Path | None = None) -> None:
        self.name = name
        self.path = path
        self.format: str | None = None
        start = _read_all(file, 8)
        self.compression = compression_of_content(start)
        self._check_name()
        if start.startswith(_SPREADSHEETS):
            raise self.error("a spreadsheet or an archive: save it as CSV, or unpack it")
        self._file: Any = _Rewound(start, file)
        if self.compression:
            self._file = decompressed(self._file, self.compression)
        self.head = self._read(_HEAD)

    def error(self, problem: str, line: int | None = None) -> DataFormatError:
        """Return the error to raise: where, read as what, and the problem."""
        where = self.name if line is None else f"{self.name}, line {line:,}"
        seen = f" (read as {self.format})" if self.format else ""
        return DataFormatError(f"{where}{seen}: {problem}")

    def blocks(self, size: int = _BLOCK) -> Iterator[bytes]:
        """Yield all bytes from the beginning, some at a time."""
        block, self.head = self.head, b""
        while block:
            yield block
            block = self._read(size)

    def line_blocks(self) -> Iterator[bytes]:
        """Return all bytes, some at a time, cut at line ends; without a byte order mark."""
        self.head = self.head.removeprefix(_BYTE_ORDER_MARK)
        return whole_lines(self.blocks(min(_BLOCK, max_line_bytes())), self.too_long)

    def too_long(self, line: int) -> DataFormatError:
        """Return the error to raise for a line that is longer than allowed."""
        return self.error(limit_advice(), line)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield numbered lines of UTF-8 text, without their newline."""
        number = 0
        for block in self.line_blocks():
            try:
                text = block.decode()
            except UnicodeDecodeError as problem:
                line = number + 1 + block.count(b"\n", 0, problem.start)
                raise self.error(f"not UTF-8 ({problem.reason}); save it as UTF-8", line) from None
            for line_text in text.removesuffix("\n").split("\n"):
                number += 1
                yield number, line_text

    @contextmanager
    def again(self) -> Iterator["Source"]:
        """Open the same file from the beginning, for a first look at all of it."""
        if self.path is None:
            raise ParameterError(f"{self.name} can be read only once, not twice: pass a path")
        with open_source(self.path) as source:
            source.format = self.format
            yield source

    def _read(self, size: int) -> bytes:
        try:
            return _read_all(self._file, size)
        except DAMAGED as problem:
            raise self.error(
                f"the {self.compression} data is damaged or cut short ({problem}); copy it again"
            ) from None

    def _check_name(self) -> None:
        promised = compression_of_name(self.name)
        if promised and promised != self.compression:
            raise self.error(
                f"the name ends in .{promised}, but the content is "
                f"{self.compression or 'not compressed'}: damaged, or to be renamed"
            )


@contextmanager
def open_source(path: Readable) -> Iterator[Source]:
    """Open a path, or take an open binary file (which stays open)."""
    if hasattr(path, "read"):
        yield Source(str(getattr(path, "name", "the open file")), path)
        return
    if not isinstance(path, str | PathLike):
        raise ParameterError(
            f"a {type(path).__name__} is not a path; expected that of one file. For several files, "
            "umpteen.data.read_shards takes names and patterns"
        )
    place = Path(fspath(path))
    if place.is_dir():
        inside = ", ".join(sorted(entry.name for entry in place.iterdir())[:8]) or "nothing"
        raise DataFormatError(f"{place} is a folder; give one of its files (it holds {inside})")
    try:
        file = place.open("rb")
    except FileNotFoundError:
        is_pattern = any(character in str(place) for character in "*?[")
        advice = "umpteen.data.read_shards takes patterns" if is_pattern else "check the path"
        raise DatasetNotFoundError(f"no file {place}; {advice}") from None
    with file:
        yield Source(str(place), file, place)


def whole_lines(
    blocks: Iterable[bytes], too_long: Callable[[int], DataFormatError]
) -> Iterator[bytes]:
    """Yield the same bytes, cut at line ends; raise `too_long(number)` for too long a line."""
    most = max_line_bytes()
    rest: list[bytes] = []
    size, n_lines = 0, 0
    for block in blocks:
        first, cut = block.find(b"\n"), block.rfind(b"\n") + 1
        if size + (first if cut else len(block)) > most:
            raise too_long(n_lines + 1)
        if cut:
            yield b"".join([*rest, block[:cut]])
            n_lines += block.count(b"\n")
            rest, size = [], 0
        rest.append(block[cut:])
        size += len(block) - cut
    if last := b"".join(rest):
        yield last


class _Rewound:
    """A file whose first bytes were read already and come again."""

    def __init__(self, start: bytes, file: Any) -> None:
        self._start, self._file = start, file

    def read(self, size: int) -> bytes:
        if not self._start:
            return self._file.read(size)  # type: ignore[no-any-return]
        taken, self._start = self._start[:size], self._start[size:]
        return taken


def _read_all(file: Any, size: int) -> bytes:
    """`size` bytes, fewer only at the end: pipes give what they have."""
    pieces: list[bytes] = []
    while size and (piece := file.read(size)):
        if not isinstance(piece, bytes):
            raise ParameterError("the open file gives text; open it in binary mode: 'rb'")
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
