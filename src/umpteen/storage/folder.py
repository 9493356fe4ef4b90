"""The folder on disk: all arrays first, then the manifest in one step, then what is left over."""

import json
import os
import platform
import re
import secrets
import stat
import threading
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from umpteen.errors import (
    ModelCorruptError,
    ModelNotFoundError,
    ModelPathError,
    ModelVersionError,
    UmpteenError,
)
from umpteen.limits import limit_advice, max_line_bytes
from umpteen.storage.arrays import Array, write_array
from umpteen.writing import sync_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT = 1

MANIFEST = "manifest.json"
_KIND = "umpteen model"
_PATIENCE, _PAUSE = 2.0, 0.05  # seconds: until a wait is worth a word, and between looks
_OURS = re.compile(r"[0-9a-f]{12}-(\d+\.npy|manifest\.json)")


def write_model(folder: Path, content: Any, arrays: list[Array]) -> None:
    """Replace the model in `folder` by another, so that a kill leaves one of the two."""
    _check_free(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except NotADirectoryError:
        raise ModelPathError(
            f"{folder} cannot be a folder, because it is below a file: choose another path"
        ) from None
    save_id = secrets.token_hex(6)
    with locked(folder):
        try:
            entries = [
                write_array(folder / f"{save_id}-{number}.npy", array)
                for number, array in enumerate(arrays)
            ]
            sync_folder(folder)
            _replace_manifest(folder, save_id, {"model": content, "arrays": entries})
        finally:
            _remove_leftovers(folder)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read and check the manifest of the model in `folder`."""
    path = folder / MANIFEST
    if not path.is_file() or path.is_symlink():
        raise ModelNotFoundError(_not_found(folder))
    manifest = _parse(path)
    if manifest is None:
        raise ModelCorruptError(f"{path} is damaged: copy the whole model folder again")
    _check_version(manifest, folder)
    if not _has_checksum(manifest):
        raise ModelCorruptError(
            f"{path} was edited or damaged (its checksum differs): copy the model folder again"
        )
    return manifest


def versions() -> dict[str, str]:
    """Return the versions that a model was saved with."""
    libraries = ("umpteen", "numpy", "scipy", "sklearn")
    found = {name: str(import_module(name).__version__) for name in libraries}
    return {"python": platform.python_version(), **found}


def _not_found(folder: Path) -> str:
    if not folder.exists():
        return f"there is no folder {folder}: check the path, or save a model there first"
    if not folder.is_dir():
        return f"{folder} is a file; a model is a folder, as model.save(path) makes it"
    if os.path.lexists(folder / MANIFEST):  # a link, a pipe, a folder
        return f"{folder / MANIFEST} is not a regular file; save the model again"
    return f"{folder} holds no {MANIFEST}, so no model was ever completely saved there"


def _parse(path: Path) -> dict[str, Any] | None:
    """The JSON in `path`, if it is the manifest of a model."""
    if not path.is_file():
        return None
    content = _content(path)
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError):
        return None
    is_ours = isinstance(manifest, dict) and manifest.get("kind") == _KIND
    return manifest if is_ours else None


def _content(path: Path) -> bytes:
    """Return the bytes of a regular file; never wait for a pipe or read an endless device."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if found.st_size > max_line_bytes():
            raise ModelCorruptError(f"{path} is not a valid manifest: it is {limit_advice()}")
        return file.read(found.st_size) if stat.S_ISREG(found.st_mode) else b""


def _check_version(manifest: dict[str, Any], folder: Path) -> None:
    number = manifest.get("format")
    if not isinstance(number, int) or number < 1:
        raise ModelCorruptError(f"{folder / MANIFEST} has the format {number!r}; copy it again")
    if number > FORMAT:
        raise ModelVersionError(
            f"{folder} was saved in format {number} (with {manifest.get('versions')}), and this "
            f"version of umpteen reads up to format {FORMAT}: pip install --upgrade umpteen"
        )


def _has_checksum(manifest: dict[str, Any]) -> bool:
    try:
        return _checksum(manifest) == manifest.get("checksum")
    except RecursionError:  # nested more deeply than a save writes
        return False


def _checksum(manifest: dict[str, Any]) -> int:
    rest = {name: value for name, value in manifest.items() if name != "checksum"}
    return zlib.crc32(json.dumps(rest, sort_keys=True).encode("ascii"))


def _replace_manifest(folder: Path, save_id: str, content: dict[str, Any]) -> None:
    manifest = {"kind": _KIND, "format": FORMAT, "versions": versions(), **content}
    manifest["checksum"] = _checksum(manifest)
    draft = folder / f"{save_id}-{MANIFEST}"
    with draft.open("x", encoding="ascii") as file:
        json.dump(manifest, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, folder / MANIFEST)
    sync_folder(folder)


def _remove_leftovers(folder: Path) -> None:
    """Files that a save wrote and no model needs: of the old model, or of a save that failed."""
    try:
        needed = {entry["file"] for entry in read_manifest(folder)["arrays"]}
    except ModelNotFoundError:
        needed = set()
    except (UmpteenError, LookupError, TypeError):  # an unreadable model: keep all of it
        return
    for name in os.listdir(folder):
        if _OURS.fullmatch(name) and name not in needed:
            with suppress(OSError):  # Windows keeps files that are mapped; the next save retries
                (folder / name).unlink()


def _check_free(folder: Path) -> None:
    """A model may be saved where nothing is, or a model, or the remains of a killed save."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ModelPathError(f"{folder} is a file; a model needs a folder: choose another path")
    names = os.listdir(folder)
    if MANIFEST in names and _parse(folder / MANIFEST) is None:
        raise ModelPathError(
            f"{folder / MANIFEST} is damaged or not of a model; nothing was changed: remove "
            "the folder yourself, or choose another path"
        )
    foreign = [name for name in names if not _OURS.fullmatch(name)]
    if foreign and MANIFEST not in names:
        raise ModelPathError(
            f"{folder} holds other files ({foreign[0]!r}, {len(foreign):,} in all) and no model; "
            "nothing was changed: choose a new or an empty folder"
        )


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Lock a folder while the block runs; yield False if locking is not possible there.

    That is so on Windows and on some network drives. The lock is released when the process ends,
    however it ends. A thread that holds the lock may take it again.
    """
    if fcntl is None:
        yield False
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        found = os.fstat(handle)
        place = (found.st_dev, found.st_ino)
        if place in _held.places:
            yield True
            return
        alone = _wait(handle, folder)
        _held.places.add(place)
        try:
            yield alone
        finally:
            _held.places.discard(place)
    finally:
        os.close(handle)


class _Held(threading.local):
    """The folders that a thread has locked."""

    def __init__(self) -> None:
        self.places: set[tuple[int, int]] = set()


_held = _Held()


def _wait(handle: int, folder: Path) -> bool:
    """Wait for the lock, with a warning if it takes long; return False if it is impossible."""
    end = time.monotonic() + _PATIENCE
    try:
        while time.monotonic() < end:
            with suppress(BlockingIOError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            time.sleep(_PAUSE)
        warnings.warn(f"{folder} is being changed elsewhere: waiting for that to end", stacklevel=2)
        fcntl.flock(handle, fcntl.LOCK_EX)
        return True
    except OSError:  # cannot be locked
        return False
