"""A file being written: compressed by its name, and there as a whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

from umpteen.data.formats.compression import compressed, compression_of_name
from umpteen.errors import DataFormatError, DatasetNotFoundError

Writable: TypeAlias = "str | PathLike[str] | BinaryIO"


@contextmanager
def open_sink(path: Writable) -> Iterator[BinaryIO]:
    """A file to write to; at a path, it replaces what is there once everything is written."""
    if hasattr(path, "write"):
        yield cast(BinaryIO, path)
        return
    place = Path(fspath(path))
    if place.is_dir():
        raise DataFormatError(f"{place} is a folder; give the name of a file in it")
    if not place.parent.is_dir():
        raise DatasetNotFoundError(f"no folder {place.parent} to write {place.name} into; make it")
    part = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file, compressed(file, compression_of_name(place.name)) as inner:
            yield inner
        os.replace(part, place)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
