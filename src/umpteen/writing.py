"""Files being written: there as a whole or not at all, and no device or link is ever replaced."""

import errno
import io
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO, cast

from umpteen.errors import NotWritableError, ParameterError

_DESCRIPTOR = re.compile(r"/(?:dev|proc/(\d+)(?:/task/\d+)?)/fd/(\d+)")
_BINARY = getattr(os, "O_BINARY", 0)
_NO_TERMINAL = getattr(os, "O_NOCTTY", 0)
_LONGEST_CHAIN = 40  # links that lead to one another, as Linux counts


@contextmanager
def open_to_write(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a file to write to, which is at `path` once all of it is written.

    An interrupted write leaves what was there before. A file that was there keeps its owner and
    its permissions, and a link stays a link to the file that is replaced. Whatever is no regular
    file (a pipe, a device, `/dev/stdout`, `/dev/fd/3`) is written to as it is.
    """
    place = Path(fspath(path))
    descriptor = _descriptor(place)
    if descriptor is not None:
        if sys.stdout is not None:
            sys.stdout.flush()  # what was printed before comes before
        file = _File.opened(place, lambda: os.dup(descriptor))
    else:
        found = _checked(place)
        if found is None or stat.S_ISREG(found.st_mode):
            with _replacing(place, found) as draft:
                yield draft
            return
        file = _File.opened(place, lambda: os.open(place, os.O_WRONLY | _BINARY | _NO_TERMINAL))
    with file, _flushed(file) as buffered:
        yield buffered


@contextmanager
def open_draft(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a new file to write to, which is on the disk when the block ends, or gone if it fails.

    Nothing is replaced: a later rename gives the file its name.
    """
    place = Path(fspath(path))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
    try:
        with _File.opened(place, lambda: os.open(place, flags, 0o666)) as file:
            with _flushed(file) as buffered:
                yield buffered
            os.fsync(file.fileno())
    except FileExistsError:
        raise
    except BaseException:
        place.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make renames and new names in a folder survive a power cut."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_writable(path: str | PathLike[str]) -> None:
    """Raise `NotWritableError` where nothing can be written: before the work, not after it."""
    place = Path(fspath(path))
    if _descriptor(place) is None:
        _checked(place)


def save_picture(figure: Any, path: str | PathLike[str], **options: Any) -> None:
    """Write a figure of matplotlib; the suffix of `path` (.png, .svg, .pdf) chooses the format."""
    supported = figure.canvas.get_supported_filetypes()
    suffix = Path(path).suffix.lstrip(".").lower()
    if suffix not in supported:
        formats = ", ".join(f".{name}" for name in supported)
        raise ParameterError(f"{path} has no picture format; end its name with one of {formats}")
    with open_to_write(path) as file:
        figure.savefig(file, format=suffix, **options)


@contextmanager
def _replacing(place: Path, found: os.stat_result | None) -> Iterator[BinaryIO]:
    target = Path(os.path.realpath(place))
    draft = target.with_name(f".{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY
    mode = 0o666 if found is None else 0o600  # until it is what it was
    try:
        with _File.opened(place, lambda: os.open(draft, flags, mode)) as file:
            if found is not None:
                _keep_permissions(draft, found)
            with _flushed(file) as buffered:
                yield buffered
        try:
            os.replace(draft, target)
        except OSError as problem:
            raise _refused(place, problem) from None
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _keep_permissions(draft: Path, found: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with suppress(OSError):  # who is not root may give nothing away
            os.chown(draft, found.st_uid, found.st_gid)
    with suppress(OSError):  # not every file system has permissions
        os.chmod(draft, found.st_mode & 0o777)


@contextmanager
def _flushed(file: "_File") -> Iterator[BinaryIO]:
    """Yield the file with a buffer, which is written at the end, unless something went wrong."""
    buffered = io.BufferedWriter(file)
    yield cast(BinaryIO, buffered)
    buffered.flush()


class _File(io.FileIO):
    """An open file whose errors tell its name."""

    @classmethod
    def opened(cls, place: Path, descriptor: Any) -> "_File":
        try:
            file = cls(descriptor(), "wb")
        except OSError as problem:
            raise _refused(place, problem) from None
        file._place = place
        return file

    _place: Path

    def write(self, data: Any) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)
        except BrokenPipeError:  # the reader has enough, which is no error of the file
            raise
        except OSError as problem:
            raise _refused(self._place, problem) from None


def _checked(place: Path) -> os.stat_result | None:
    """What is at a place, or at the end of its links; None if a new file can be made there."""
    try:
        found = place.stat()
    except FileNotFoundError:
        found = None
    except OSError as problem:
        raise _refused(place, problem) from None
    except ValueError as problem:  # a character that no file name may have
        raise NotWritableError(f"{str(place)!r} cannot be written: {problem}") from None
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise NotWritableError(f"{place} is a folder; give the name of a file in it")
    if found is not None and not os.access(place, os.W_OK):
        raise NotWritableError(f"{place} is read-only: change that, or choose another name")
    if found is None or stat.S_ISREG(found.st_mode):
        target = Path(os.path.realpath(place))
        if not target.parent.is_dir():
            raise NotWritableError(
                f"{place} cannot be written: the folder {target.parent} does not exist; create it"
            )
        if not os.access(target.parent, os.W_OK):
            raise NotWritableError(
                f"{place} cannot be written: you may not create files in {target.parent}; "
                "change its permissions, or choose another folder"
            )
    return found


def _descriptor(place: Path) -> int | None:
    """The number of our own open file that a name such as /dev/stdout leads to."""
    for _ in range(_LONGEST_CHAIN):
        folder = Path(os.path.realpath(place.parent))
        match = _DESCRIPTOR.fullmatch(str(folder / place.name))
        if match and match[1] in (None, str(os.getpid())):
            return int(match[2])
        try:
            place = folder / os.readlink(place)
        except (OSError, ValueError):
            return None
    return None


def _refused(place: Path, problem: OSError) -> NotWritableError:
    reason = {
        errno.ENOSPC: "no space is left: make room, or choose another place",
        errno.ELOOP: "its links form a loop: remove them, or choose another name",
        errno.EBADF: "it is not open for writing: open it in the shell, or name a file",
    }.get(problem.errno or 0, problem.strerror or str(problem))
    error = NotWritableError(f"{place} cannot be written: {reason}")
    error.errno = problem.errno
    return error
