"""A file that results are appended to: numbers and arrays without pickle, whole or not there.

A record is a header, the form of the result as JSON, and the bytes of its arrays. A process that
is killed leaves a last record that is cut short; it is dropped when the file is opened again.
"""

import json
import struct
import zlib
from contextlib import suppress
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_matrix

from umpteen.errors import NotStorableError

_HEADER = struct.Struct("<4sIQI")  # the mark, the lengths of form and arrays, a checksum of both
_MARK = b"umpt"


class Journal:
    """Results by their keys: `with Journal(path) as journal: ...`."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a+b")
        self._places: dict[str, int] = {}
        self._file.seek(0)
        end = 0
        while (record := self._next()) is not None:
            key, end_of_record = record
            self._places[key], end = end, end_of_record
        self._file.truncate(end)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        where: TracebackType | None,
    ) -> None:  # fmt: skip
        self._file.close()

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def append(self, key: str, result: Any) -> None:
        """Write a result, unless it holds something else than numbers, texts and arrays."""
        arrays: list[np.ndarray] = []
        with suppress(NotStorableError):
            form = json.dumps([key, _form(result, arrays)]).encode()
            content = form + b"".join(array.tobytes() for array in arrays)
            size = len(content) - len(form)
            header = _HEADER.pack(_MARK, len(form), size, zlib.crc32(content))
            self._file.write(header + content)
            self._file.flush()  # then it survives the process

    def read(self, key: str) -> Any:
        """Return the result that was written under a key."""
        self._file.seek(self._places[key])
        _, n_form, n_arrays, _ = _HEADER.unpack(self._file.read(_HEADER.size))
        form = json.loads(self._file.read(n_form))[1]
        return _value(form, bytearray(self._file.read(n_arrays)))

    def _next(self) -> tuple[str, int] | None:
        """Read and check the record that begins here; return its key and where it ends."""
        header = self._file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return None
        mark, n_form, n_arrays, checksum = _HEADER.unpack(header)
        content = self._file.read(n_form + n_arrays)
        if mark != _MARK or len(content) < n_form + n_arrays or zlib.crc32(content) != checksum:
            return None
        return json.loads(content[:n_form])[0], self._file.tell()


def _form(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return what a value is made of as JSON; its arrays are appended."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is np.ndarray and value.dtype.kind in "biufc":
        start = sum(array.nbytes for array in arrays)
        arrays.append(value)
        return {"array": [value.dtype.str, value.shape, start, bool(value.flags.writeable)]}
    if isinstance(value, np.number | np.bool_):
        return {"scalar": _form(np.asarray(value), arrays)}
    if type(value) is csr_matrix:
        pieces = [_form(part, arrays) for part in (value.data, value.indices, value.indptr)]
        return {"csr": [value.shape, value.has_canonical_format, *pieces]}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_form(each, arrays) for each in value]}
    if type(value).__module__.startswith("umpteen."):
        pieces = [_form(getattr(value, name), arrays) for name in _field_names(type(value))]
        return {"object": [type(value).__module__, type(value).__qualname__, pieces]}
    raise NotStorableError(f"a result of type {type(value).__name__} cannot be kept")


def _value(form: Any, content: bytearray) -> Any:
    if not isinstance(form, dict):
        return form
    ((kind, pieces),) = form.items()
    if kind == "array":
        dtype, shape, start, is_writeable = pieces
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(content, np.dtype(dtype), count, start).reshape(shape).copy()
        array.flags.writeable = is_writeable
        return array
    if kind == "scalar":
        return _value(pieces, content)[()]
    if kind == "csr":
        shape, is_canonical, *arrays = pieces
        matrix = csr_matrix(tuple(shape))
        matrix.data, matrix.indices, matrix.indptr = (_value(each, content) for each in arrays)
        matrix.has_canonical_format = is_canonical
        return matrix
    if kind == "object":
        module, name, members = pieces
        if not module.startswith("umpteen."):
            raise NotStorableError(f"{module}.{name} is no result of a task of ours")
        cls = getattr(import_module(module), name)
        names = _field_names(cls)
        return cls(
            **{name: _value(each, content) for name, each in zip(names, members, strict=True)}
        )
    return {"list": list, "tuple": tuple}[kind](_value(each, content) for each in pieces)


def _field_names(cls: type) -> list[str]:
    """The pieces of a dataclass or a named tuple, in order."""
    if is_dataclass(cls):
        return [field.name for field in fields(cls)]
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return list(cls._fields)
    raise NotStorableError(f"a result of type {cls.__name__} cannot be kept")
