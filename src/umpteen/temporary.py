"""Folders of a process for files that nobody needs after it.

Such a folder has a lock that the system releases when the process ends, however it ends. So the
next process with the same parent folder can tell which folders are left over, and removes them.
"""

import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_PREFIX = "umpteen-"
_LOCK = ".lock"
_BEHIND = 1 << 20  # its content


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Yield a new folder in another one, and remove it after the block.

    Before that, the folders of killed processes of this machine are removed. On Windows, files that
    are still mapped when the block ends stay until then, too.
    """
    remove_abandoned(parent)
    owner = os.getpid()
    own = parent / f"{_PREFIX}{secrets.token_hex(8)}"
    lock = own.with_suffix(_LOCK)
    try:
        with _held(lock):
            own.mkdir(mode=0o700)
            yield own
    finally:
        if os.getpid() == owner:  # else it was forked from the process that needs the folder
            _remove(lock)


def remove_abandoned(parent: Path) -> None:
    """Remove the folders that processes of this machine left in a folder when they were killed."""
    for lock in parent.glob(f"{_PREFIX}*{_LOCK}"):
        with suppress(OSError):
            if _is_abandoned(lock):
                _remove(lock)


def _is_abandoned(lock: Path) -> bool:
    name = socket.gethostname().encode()
    with lock.open("r+b") as file:
        return file.read(len(name) + 1) == name and _locked(file)


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold a lock in the block; its file gets the name of this machine once it is held."""
    with path.open("xb") as file:
        _locked(file)
        file.write(socket.gethostname().encode())
        file.flush()
        yield


def _locked(file: BinaryIO) -> bool:
    """Lock a file that nobody else has locked; return whether that was possible."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            file.seek(_BEHIND)  # a lock of Windows keeps others from reading what it covers
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            file.seek(0)
    except OSError:
        return False
    return True


def _remove(lock: Path) -> None:
    """Remove the folder of a lock, and then the lock itself, unless files are left."""
    folder = lock.with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        with suppress(OSError):
            lock.unlink()
