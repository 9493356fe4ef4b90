"""A cache of answers: in memory, and in a folder if there is one."""

import json
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from umpteen.writing import open_to_write

_LARGEST = 1 << 20  # bytes of a file


class AnswerCache:
    """Choices by a checksum of everything that was asked, and of whom; no text is stored."""

    def __init__(self, url: str, folder: str | PathLike[str] | None = None) -> None:
        self._url = url
        self._folder = None if folder is None else Path(folder)
        self._seen: dict[str, list[int]] = {}
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)

    def get(self, body: dict[str, Any], n_candidates: int) -> list[int] | None:
        """Return the choice that was made for the same question, or None."""
        key = self._key(body)
        if key not in self._seen and self._folder is not None:
            found = _read(self._folder / f"{key}.json", n_candidates)
            if found is not None:
                self._seen[key] = found
        return self._seen.get(key)

    def put(self, body: dict[str, Any], places: list[int]) -> None:
        """Keep a choice."""
        key = self._key(body)
        self._seen[key] = places
        if self._folder is None:
            return
        path = self._folder / f"{key}.json"
        if path.is_file() or not path.exists():
            with open_to_write(path) as file:
                file.write(json.dumps(places).encode())

    def _key(self, body: dict[str, Any]) -> str:
        return sha256(json.dumps([self._url, body], sort_keys=True).encode()).hexdigest()


def _read(path: Path, n_candidates: int) -> list[int] | None:
    """The choice in a file; None if there is none, or it is damaged."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:  # a pipe would wait for a writer
            return None
        places = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    sound = isinstance(places, list) and all(
        type(place) is int and 0 <= place < n_candidates for place in places
    )
    return places if sound and len(set(places)) == len(places) else None
