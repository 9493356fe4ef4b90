"""One array, one `.npy` file, which numpy and other tools can read as well."""

import math
import os
import re
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from umpteen.errors import ModelCorruptError

Array: TypeAlias = npt.NDArray[Any]

_FILE_NAME = re.compile(r"[0-9a-f]{12}-\d+\.npy")

_DTYPE = re.compile(r"[<>|][biufc]\d{1,2}")
_CHUNK = 1 << 20
_SMALLEST_MAPPED = 1 << 18  # a mapping keeps a file handle open, and those are few


def write_array(path: Path, array: Array) -> dict[str, Any]:
    """Write `array` to the new file `path`; what the manifest must know of it."""
    array = np.asarray(array, order="C")
    header = _header(array.dtype, array.shape)
    data = _bytes(array)
    checksum = 0
    with path.open("xb") as file:
        file.write(header)
        for start in range(0, len(data), _CHUNK):
            chunk = data[start : start + _CHUNK]
            checksum = zlib.crc32(chunk, checksum)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return {
        "file": path.name,
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "bytes": len(header) + len(data),
        "crc32": checksum,
    }


def open_array(folder: Path, entry: dict[str, Any], mmap: bool, verify: bool) -> Array:
    """Open the array that `entry` of the manifest describes, after its file was found to fit.

    Mapped arrays are copy-on-write: to numba a read-only array is another type, for which
    every kernel would be compiled again.
    """
    path = folder / plain_name(entry["file"])
    dtype, shape = number_dtype(entry["dtype"]), tuple(entry["shape"])
    header = _header(dtype, shape)
    n_bytes = math.prod(shape) * dtype.itemsize
    with _opened(path) as file:
        _check_file(file, header, len(header) + n_bytes)
        if mmap and n_bytes >= _SMALLEST_MAPPED:
            mapped = np.memmap(file, dtype, mode="c", offset=len(header), shape=shape)
            array: Array = mapped.view(np.ndarray)
        else:
            array = np.fromfile(file, dtype, math.prod(shape)).reshape(shape)
    if verify and zlib.crc32(_bytes(array)) != entry["crc32"]:
        raise ModelCorruptError(f"{path} was changed since it was saved: copy the model again")
    return array


def number_dtype(name: str) -> np.dtype[Any]:
    """Return the type of that name, if it is one of numbers; numpy has others for objects."""
    if not _DTYPE.fullmatch(name):
        raise ModelCorruptError(f"manifest.json names the type {name!r}; expected numbers")
    return np.dtype(name)


def _opened(path: Path) -> BinaryIO:
    if path.is_symlink():
        raise ModelCorruptError(f"{path} is a link: copy the file itself into the model folder")
    with suppress(FileNotFoundError):  # a save may remove it at this moment
        if path.is_file():  # a pipe would wait for its writer
            return path.open("rb")
    raise ModelCorruptError(f"{path} is missing: copy the whole model folder again")


def _check_file(file: BinaryIO, header: bytes, size: int) -> None:
    found = os.fstat(file.fileno()).st_size
    if found != size:
        raise ModelCorruptError(
            f"{file.name} has {found:,} bytes, expected {size:,}: copy the model folder again"
        )
    if file.read(len(header)) != header:
        raise ModelCorruptError(
            f"{file.name} holds an array of another type or shape than manifest.json says: "
            "copy the model folder again"
        )


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The header of format 1.0, made here so that it is the same with every numpy.

    >>> _header(np.dtype("<f4"), (2, 3))[10:69]
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    """
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {shape!r}, }}"
    padded = text + " " * (-(10 + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode("ascii")


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def plain_name(name: str) -> str:
    """Return the name of an array's file, if it is one that a save gives."""
    if not _FILE_NAME.fullmatch(name):
        raise ModelCorruptError(f"manifest.json names the file {name!r}, which no save writes")
    return name
