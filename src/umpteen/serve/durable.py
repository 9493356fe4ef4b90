"""Small files that survive a kill or a power failure at any moment."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from umpteen.writing import open_to_write


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Replace a file atomically; afterwards it is on disk."""
    with open_to_write(path) as file:
        file.write(json.dumps(content, ensure_ascii=False, indent=1).encode())
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file, or None if there is none."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def append_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Append a line of JSON for each record, all or none; afterwards they are on disk."""
    lines = b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in records)
    is_new = not path.exists()
    with path.open("ab", buffering=0) as file:
        before = file.tell()
        try:
            _write_all(file.fileno(), lines)
            os.fsync(file.fileno())
        except OSError:  # no room: what is half there goes away
            file.truncate(before)
            raise
    if is_new:
        sync_folder(path.parent)


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def repair_lines(path: Path) -> None:
    """Cut off an incomplete last line, which a killed process left."""
    with path.open("r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - (1 << 16))
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            file.truncate(end)
            os.fsync(file.fileno())


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects in a file of JSON lines; other lines are skipped."""
    if not path.exists():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict) and line.endswith(b"\n"):
                yield found


def sync_folder(folder: Path) -> None:
    """Make new files in a folder survive a power failure."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
