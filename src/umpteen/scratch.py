"""A scratch folder: large matrices that are in files there, and are read in place.

Files are mapped into memory, and the system drops what it has no room for. Tasks on other machines
map the same files, if these machines see the folder.
"""

import os
import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from copy import copy
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import validation
from umpteen.errors import NotWritableError
from umpteen.temporary import temporary_folder
from umpteen.validation import Features
from umpteen.validation.arrays import index_dtype

Bytes = npt.NDArray[np.uint8]
Rows = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]  # indptr, indices, data

_SLICE = 1 << 22  # values
_ROWS = 1 << 14  # that are taken from a file at a time


class Place(NamedTuple):
    """Where some bytes are."""

    path: str
    offset: int
    n_bytes: int

    def opened(self) -> Bytes:
        """Return the bytes, mapped, on any machine that sees the file."""
        if self.n_bytes == 0:
            return np.zeros(0, np.uint8)  # an empty file cannot be mapped
        return np.memmap(self.path, np.uint8, "r", self.offset, (self.n_bytes,))


class Scratch:
    """Files in a folder, each an array that is written once and then mapped.

    A file is removed with the last array that is mapped from it, because a process may only have a
    limited number of files open.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._process = folder, os.getpid()
        self._maps: dict[Path, tuple[int, int]] = {}  # address and length of what is still used
        self._numbers = count(1)

    def write(self, blocks: Iterable[npt.NDArray[Any]], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Write arrays one after the other, and return them as one."""
        with self._new_file(dtype) as file:
            for block in blocks:
                file.append(block)
        return self._mapped(file)

    def write_rows(self, blocks: Iterable[Rows], n_columns: int) -> csr_matrix:
        """Write blocks of rows one after the other, and return them as one matrix."""
        lengths = [np.zeros(1, np.int32)]
        with self._new_file(np.int32) as indices, self._new_file(np.float32) as data:
            for indptr, own_indices, own_data in blocks:
                lengths.append(np.diff(indptr).astype(np.int32))
                indices.append(own_indices)
                data.append(own_data)
        starts = np.cumsum(np.concatenate(lengths), dtype=np.int64)
        columns, values = self._mapped(indices), self._mapped(data)
        dtype = index_dtype(len(values), len(starts) - 1)
        if columns.dtype != dtype:
            columns = self.write((columns[part] for part in slices(len(columns))), dtype)
        return _matrix((self.write([starts], dtype), columns, values), n_columns)

    def place_of(self, array: Bytes) -> Place | None:
        """Return where an array is that was written here, or None."""
        for path, (address, n_bytes) in list(self._maps.items()):
            offset = _address(array) - address
            if offset >= 0 and offset + array.nbytes <= n_bytes:
                return Place(str(path), offset, array.nbytes)
        return None

    def _new_file(self, dtype: npt.DTypeLike) -> "_File":
        return _File(self._folder / f"{next(self._numbers)}.bin", dtype)

    def _mapped(self, file: "_File") -> npt.NDArray[Any]:
        if file.n_bytes == 0:
            return np.zeros(0, file.dtype)
        with _named(self._folder):
            mapped = np.memmap(file.path, file.dtype, "r")
        self._maps[file.path] = _address(mapped), mapped.nbytes
        weakref.finalize(mapped, self._remove, file.path).atexit = False  # views hold `mapped`
        return mapped.view(np.ndarray)  # pickle would take the content of a `memmap` along

    def _remove(self, path: Path) -> None:
        del self._maps[path]
        if os.getpid() != self._process:  # a process that was forked has no files of its own here
            return
        with suppress(OSError):  # the block has ended, or Windows keeps a file that is in use
            path.unlink()


class _File:
    """A file that arrays are appended to."""

    def __init__(self, path: Path, dtype: npt.DTypeLike) -> None:
        self.path, self.dtype, self.n_bytes = path, np.dtype(dtype), 0

    def __enter__(self) -> Self:
        with _named(self.path.parent):
            self._file = self.path.open("xb")
        return self

    def append(self, array: npt.NDArray[Any]) -> None:
        content = np.ascontiguousarray(array, self.dtype)
        with _named(self.path.parent):
            self._file.write(content.data)
        self.n_bytes += content.nbytes

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        where: TracebackType | None,
    ) -> None:  # fmt: skip
        with _named(self.path.parent):
            self._file.close()


_current: ContextVar[Scratch | None] = ContextVar("scratch", default=None)


def current() -> Scratch | None:
    """Return the scratch folder of the block, if there is one."""
    return _current.get()


@contextmanager
def scratch(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Keep features in files in a folder, not in memory: `with um.data.scratch("folder"): ...`.

    In the block, `Tagger.fit` and `Vectorizer.transform` write features of texts there, and fitting
    reads them in place, so they may be larger than the memory. The model is the same to the bit.
    On a cluster, workers read these files as well, and all machines must see the folder under the
    same path. Features in files are read-only. A file is removed when nothing uses its features any
    more, and all files are removed after the block. If the process is killed, the next process of
    the same machine that uses the folder removes them.

    `LabelTree`, `NearestCentroid`, `Eagle`, `NeuralClassifier`, and an `Ensemble` of these, read
    features in place. `SiameseXML` and `AdversarialSoftmax` also hold data of their own for each
    sample, which must fit into memory. A matrix that is already in memory stays there.

    >>> from tempfile import TemporaryDirectory
    >>> from umpteen.text import Vectorizer
    >>> with TemporaryDirectory() as folder, scratch(folder):
    ...     Vectorizer().fit_transform(["a cat", "a dog"]).shape
    (2, 3)
    """
    with ExitStack() as stack:
        with _named(Path(folder)):
            os.makedirs(folder, exist_ok=True)
            own = stack.enter_context(temporary_folder(Path(os.path.abspath(folder))))
        token = _current.set(Scratch(own))
        try:
            yield
        finally:
            _current.reset(token)


@contextmanager
def _named(folder: Path) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, NotADirectoryError) as problem:
        raise NotWritableError(
            f"the scratch folder {str(folder)!r} is a file, or inside of one: give a folder, which "
            "does not need to exist yet"
        ) from problem
    except (OSError, ValueError) as problem:  # ValueError: a name that no file can have
        reason = getattr(problem, "strerror", None) or problem
        raise NotWritableError(
            f"the scratch folder {str(folder)!r} cannot be written to ({reason}): use one "
            "on a disk with enough room for the features"
        ) from problem


def gathered_rows(blocks: Iterable[Rows], n_columns: int) -> csr_matrix:
    """Return the rows of all blocks as one matrix, which is in the scratch folder if there is one.

    >>> rows = np.array([0, 1]), np.array([2], np.int32), np.ones(1, np.float32)
    >>> gathered_rows([rows, rows], n_columns=3).toarray()
    array([[0., 0., 1.],
           [0., 0., 1.]], dtype=float32)
    """
    folder = current()
    if folder is not None:
        return folder.write_rows(blocks, n_columns)
    return _matrix(rows_together(list(blocks)), n_columns)


def unit_rows(X: Features) -> Features:
    """Return features with rows of length 1, in the scratch folder if `X` is there.

    >>> unit_rows(csr_matrix([[3, 4]], dtype=np.float32)).toarray()
    array([[0.6, 0.8]], dtype=float32)
    """
    folder = _folder_of(X)
    if folder is None:
        return validation.unit_rows(X)
    units: Any = copy(X)  # shares the indices
    blocks: Iterator[Any] = (validation.unit_rows(X[part]) for part in slices(X.shape[0], _ROWS))
    units.data = folder.write((each.data for each in blocks), np.float32)
    return units  # type: ignore[no-any-return]


def rows_at(X: Features, rows: npt.NDArray[Any]) -> Features:
    """Return `X[rows]`, in the scratch folder if `X` is there.

    It is for most of the rows: a few rows need no file.

    >>> rows_at(np.arange(4), np.array([True, False, False, True]))
    array([0, 3])
    """
    folder = _folder_of(X)
    if folder is None:
        return X[rows]
    numbers = np.flatnonzero(rows) if rows.dtype == bool else rows
    blocks: Iterator[Any] = (X[numbers[part]] for part in slices(len(numbers), _ROWS))
    return folder.write_rows(
        ((each.indptr, each.indices, each.data) for each in blocks), X.shape[1]
    )


def _folder_of(X: Features) -> Scratch | None:
    """Return the scratch folder if the values of a matrix are there."""
    folder = current()
    if folder is None or not isinstance(X, csr_matrix) or folder.place_of(X.data) is None:
        return None
    return folder


def rows_together(blocks: list[Rows]) -> Rows:
    """Return the rows of all blocks as those of one, and empty the list of blocks."""
    if len(blocks) == 1:
        return blocks.pop()
    columns: list[Any] = list(map(list, zip(*blocks, strict=True)))
    blocks.clear()  # so that no array is there twice for longer than it takes to copy it
    columns[0] = [np.diff(indptr) for indptr in columns[0]]
    for i in range(3):
        columns[i] = np.concatenate(columns[i])
    lengths, indices, data = columns
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), indices, data


def slices(length: int, size: int = _SLICE) -> Iterator[slice]:
    """Yield consecutive slices of a long array, whose results need not be in memory all at once.

    >>> list(slices(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def _matrix(rows: Rows, n_columns: int) -> csr_matrix:
    """Return canonical rows as a matrix, without copies of arrays that have the right type."""
    indptr, indices, data = rows
    dtype = index_dtype(len(data), len(indptr) - 1)
    shape = len(indptr) - 1, n_columns
    matrix = csr_matrix(shape, dtype=data.dtype)
    matrix.data = data
    matrix.indices = indices.astype(dtype, copy=False)
    matrix.indptr = indptr.astype(dtype, copy=False)
    matrix.has_canonical_format = True
    return matrix


def _address(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])
