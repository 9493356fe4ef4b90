"""The journal of corrections: append-only files of JSON lines, one per day.

`umpteen fit` can read these files. A line is on disk before its request is answered. If the process
is killed, it may leave half a line, whose request was never answered; the next start removes it.
"""

import hashlib
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from umpteen.serve.durable import append_lines, read_lines, repair_lines

ONE_IN = 10  # corrections are for validation, and never learned


@dataclass(frozen=True)
class Correction:
    """A text with the labels that a person gave it, and those that were suggested, if known."""

    text: str
    labels: list[str]
    suggested: list[str] | None = None
    id: str | None = None
    number: int = 0

    @property
    def is_for_validation(self) -> bool:
        """Whether it is set aside for validation; the same for every copy of the text."""
        digest = hashlib.sha256(self.text.encode("utf-8", "replace")).digest()
        return digest[0] % ONE_IN == 0

    @property
    def rejected(self) -> list[str]:
        """The labels that were suggested and are wrong."""
        return [name for name in self.suggested or [] if name not in self.labels]


@dataclass
class Tally:
    """How often people added or removed each label."""

    added: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)

    def count(self, correction: Correction) -> None:
        """Count what a person changed, if the suggestions are known."""
        if correction.suggested is not None:
            self.added.update(set(correction.labels) - set(correction.suggested))
            self.removed.update(correction.rejected)

    def most(self, n: int) -> list[dict[str, Any]]:
        """Return the labels with the most corrections."""
        total = self.added + self.removed
        best = sorted(total, key=lambda label: (-total[label], label))[:n]
        return [
            {"label": label, "added": self.added[label], "removed": self.removed[label]}
            for label in best
        ]


class Journal:
    """The corrections of one model, numbered from 1; thread-safe within one process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._lock = folder, threading.Lock()
        self.tally, self.last_number = Tally(), 0
        for path in _files(folder):
            repair_lines(path)
        for correction in read_corrections(folder):
            self.tally.count(correction)
            self.last_number = max(self.last_number, correction.number)

    def append(self, corrections: Iterable[Correction], version: str) -> int:
        """Write corrections to disk and return how many; `version` is the version in use."""
        given = list(corrections)
        now = datetime.now(UTC)
        with self._lock:
            records = [
                _record(one, number, now, version)
                for number, one in enumerate(given, self.last_number + 1)
            ]
            append_lines(self._folder / f"{now:%Y-%m-%d}.jsonl", records)
            self.last_number += len(given)
            for one in given:
                self.tally.count(one)
        return len(given)


def read_corrections(folder: Path) -> Iterator[Correction]:
    """Yield all corrections, also while more are appended."""
    for path in _files(folder):
        for record in read_lines(path):
            correction = _correction(record)
            if correction is not None:
                yield correction


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def _record(one: Correction, number: int, time: datetime, version: str) -> dict[str, Any]:
    given = {"id": one.id, "text": one.text, "labels": one.labels, "suggested": one.suggested}
    record = {name: value for name, value in given.items() if value is not None}
    return record | {
        "number": number, "time": time.isoformat(timespec="milliseconds"), "version": version
    }  # fmt: skip


def _correction(record: dict[str, Any]) -> Correction | None:
    """What a line says, unless someone changed it to something else."""
    text, labels, number = (record.get(name) for name in ("text", "labels", "number"))
    suggested = record.get("suggested")
    if not (isinstance(text, str) and isinstance(labels, list) and isinstance(number, int)):
        return None
    found = Correction(
        text,
        [str(name) for name in labels],
        [str(name) for name in suggested] if isinstance(suggested, list) else None,
        None if record.get("id") is None else str(record["id"]),
        number,
    )
    try:
        "".join([text, *found.labels, *(found.suggested or [])]).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which nothing else takes
        return None
    return found
