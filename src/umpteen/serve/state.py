"""The state of a served model on disk: journal, versions, and a log of learning."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from umpteen.errors import ParameterError
from umpteen.serve.durable import append_lines, read_lines, repair_lines
from umpteen.serve.journal import Journal
from umpteen.serve.versions import Version, Versions

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_LONGEST_CURVE = 1000  # attempts that are returned


def state_folder(model: Path, parent: Path | None) -> Path:
    """Return the folder of a model's state: next to the model, or in `parent`.

    >>> state_folder(Path("models/recipes"), None)
    PosixPath('models/recipes.serve')
    """
    place = model.resolve() if not model.is_absolute() and not model.name else model
    return (parent or place.parent) / f"{place.name}.serve"


class State:
    """The state folder of one model, locked for this process."""

    def __init__(self, folder: Path, keep_versions: int = 5) -> None:
        self.keep_versions = keep_versions
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder / "lock")
        except OSError as problem:
            raise ParameterError(
                f"cannot write corrections to {folder} ({problem.strerror}): choose another folder "
                "with --state, or serve with --no-learn"
            ) from None
        self.folder = folder
        self.versions = Versions(folder / "versions")
        self.versions.clean()
        self.journal = Journal(folder / "journal")
        self._attempts = folder / "learning.jsonl"
        if self._attempts.exists():
            repair_lines(self._attempts)

    def log(self, outcome: dict[str, Any]) -> None:
        """Append an outcome of learning to the log."""
        append_lines(self._attempts, [outcome])

    def attempts(self) -> list[dict[str, Any]]:
        """Return the outcomes of learning, oldest first."""
        return list(read_lines(self._attempts))[-_LONGEST_CURVE:]

    def describe(self, current: Version) -> dict[str, Any]:
        """Return a summary of corrections and learning."""
        recorded = self.journal.last_number
        return {
            "corrections": recorded,
            "pending": self.n_pending(current),
            "applied": current.applied,
            "refused": current.refused,
            "damaged": self.versions.damaged(),
            "curve": list(_points(self.attempts())),
            "most_corrected": self.journal.tally.most(20),
        }

    def n_pending(self, current: Version) -> int:
        """Return the number of corrections that were not processed yet."""
        return current.n_waiting(self.journal.last_number)

    def close(self) -> None:
        """Unlock the folder."""
        self._lock.close()


def _points(attempts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The learning curve, without lines that someone changed to something else."""
    for attempt in attempts:
        with suppress(AttributeError, KeyError, TypeError):
            yield _point(attempt)


def _point(attempt: dict[str, Any]) -> dict[str, Any]:
    """A point of the learning curve; there is no score without texts that were never learned."""
    unseen = attempt.get("unseen") or {}
    has_score = bool(unseen.get("n_texts"))
    return {
        "time": attempt["time"],
        "corrections": attempt["version"]["position"],
        "before": unseen["before"] if has_score else None,
        "score": unseen["after"] if has_score else None,
        "applied": attempt["applied"],
        "reason": attempt["reason"],
        "version": attempt["version"]["version"],
        "unseen": attempt.get("unseen"),
        "left_out": attempt.get("kept"),
    }


def _locked(path: Path) -> BinaryIO:
    """Open a file that no other process can open in the same way."""
    file = path.open("ab")
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise ParameterError(
                f"{path.parent} is in use by another server: stop it, or choose another folder "
                "with --state"
            ) from None
    os.set_inheritable(file.fileno(), False)
    return file
