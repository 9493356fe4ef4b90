"""A file being written: compressed by its name, and there as a whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import BinaryIO, TypeAlias, cast

from umpteen.data.formats.compression import compressed, compression_of_name
from umpteen.writing import open_to_write

Writable: TypeAlias = "str | PathLike[str] | BinaryIO"


@contextmanager
def open_sink(path: Writable) -> Iterator[BinaryIO]:
    """Open a file to write to; a path is replaced only once everything is written."""
    if hasattr(path, "write"):
        yield cast(BinaryIO, path)
        return
    place = fspath(path)
    with open_to_write(place) as file, compressed(file, compression_of_name(place)) as inner:
        yield inner
