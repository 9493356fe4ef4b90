"""Compressed files: gzip, xz and zstd, told by their first bytes and by their names."""

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from os import PathLike, fspath
from typing import Any, BinaryIO, TypeAlias, cast

import zstandard

from umpteen.writing import open_to_write

Writable: TypeAlias = "str | PathLike[str] | BinaryIO"

MAGIC = {"gz": b"\x1f\x8b", "xz": b"\xfd7zXZ\x00", "zst": b"\x28\xb5\x2f\xfd"}
DAMAGED = (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, zstandard.ZstdError)

# zstd may turn four bytes into 128 kB; small bites keep a hostile file from filling memory.
_ZSTD_BITE = 8192
_ZSTD_BUFFER = 1 << 17


def compression_of_name(name: str) -> str | None:
    """Return which compression a file name promises.

    >>> compression_of_name("train.jsonl.gz"), compression_of_name("train.jsonl")
    ('gz', None)
    """
    ending = name.lower().rpartition(".")[2]
    return ending if ending in MAGIC else None


def compression_of_content(start: bytes) -> str | None:
    """Return which compression a file's first bytes show.

    >>> compression_of_content(gzip.compress(b"hello"))
    'gz'
    """
    return next((name for name, magic in MAGIC.items() if start.startswith(magic)), None)


def decompressed(file: Any, compression: str) -> BinaryIO:
    """Return what `file` holds, decompressed while it is read; raises one of `DAMAGED`."""
    if compression == "gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=file, mode="rb"))
    if compression == "xz":
        return cast(BinaryIO, lzma.open(file, format=lzma.FORMAT_XZ))
    return io.BufferedReader(_ZstdReader(file), _ZSTD_BUFFER)


@contextmanager
def compressed(file: Any, compression: str | None) -> Iterator[BinaryIO]:
    """Open a file to write to, whose bytes reach `file` compressed; `file` stays open."""
    inner: Any = nullcontext(file)
    if compression == "gz":  # no name and no time inside: the same samples give the same bytes
        inner = gzip.GzipFile("", "wb", 6, file, mtime=0)
    elif compression == "xz":
        inner = lzma.LZMAFile(file, "wb")  # noqa: SIM115
    elif compression == "zst":
        inner = zstandard.ZstdCompressor().stream_writer(file, closefd=False)
    with inner as opened:
        yield opened


@contextmanager
def open_sink(path: Writable) -> Iterator[BinaryIO]:
    """Open a file to write to; a path is replaced only once everything is written."""
    if hasattr(path, "write"):
        yield cast(BinaryIO, path)
        return
    place = fspath(path)
    with open_to_write(place) as file, compressed(file, compression_of_name(place)) as inner:
        yield inner


class _ZstdReader(io.RawIOBase):
    """zstd's frames, one after another; unlike the library's own, it notices a missing end."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            bite = self._frame.unused_data or self._file.read(_ZSTD_BITE)
            if not bite and self._frame.eof:
                return 0
            if not bite:
                raise EOFError("the last frame has no end")
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._ready = memoryview(self._frame.decompress(bite))
        taken = self._ready[: len(buffer)]
        buffer[: len(taken)] = taken
        self._ready = self._ready[len(taken) :]
        return len(taken)
