"""The versions of a served model: the current one, and earlier ones.

Every version is a folder that never changes; `current.json` names the current one, and is replaced
in one step. The arrays of a model that was trained by `fit` are linked, not copied.
"""

import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from umpteen.errors import ModelNotFoundError, ParameterError
from umpteen.serve.durable import read_json, sync_folder, write_json
from umpteen.serve.snapshot import content_hash, saved_at
from umpteen.storage.folder import read_manifest

_ABOUT, _MODEL = "about.json", "model"


@dataclass(frozen=True)
class Version:
    """A model and what it has learned from the journal.

    Corrections up to number `position` were processed: `applied` of them were learned, `refused`
    were not, as the model got worse. A rollback undid those in the ranges `undone` (first, last).
    """

    version: str
    time: str
    parent: str | None = None
    position: int = 0
    applied: int = 0
    refused: int = 0
    undone: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Version":
        """Return the version of a record on disk; unknown fields of later releases are ignored."""
        given = {name: record[name] for name in cls.__dataclass_fields__ if name in record}
        given["undone"] = [(int(first), int(last)) for first, last in given.get("undone", [])]
        return cls(**given)

    @classmethod
    def read(cls, record: Any) -> "Version | None":
        """Return what a file says, unless someone changed it to something else."""
        try:
            found = cls.of(record)
        except (TypeError, ValueError):
            return None
        names, counts = (found.version, found.time), (found.position, found.applied, found.refused)
        is_sound = all(isinstance(name, str) for name in names)
        return found if is_sound and all(isinstance(count, int) for count in counts) else None

    def waits(self, number: int) -> bool:
        """Return whether a correction is still to be processed."""
        return number > self.position and not self.is_undone(number)

    def n_waiting(self, last: int) -> int:
        """Return how many corrections up to number `last` are still to be looked at."""
        undone = sum(
            max(0, min(end, last) - max(first, self.position + 1) + 1) for first, end in self.undone
        )
        return max(0, last - self.position - undone)

    def is_undone(self, number: int) -> bool:
        """Return whether a rollback undid a correction."""
        return any(first <= number <= last for first, last in self.undone)


class Versions:
    """The versions in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._current = folder.parent / "current.json"

    def clean(self) -> None:
        """Remove unfinished folders of a save that was killed."""
        for leftover in self._folder.glob(".*.part"):
            shutil.rmtree(leftover, ignore_errors=True)

    def path(self, version: str) -> Path:
        """Return the folder of a version's model."""
        return self._folder / version / _MODEL

    def all(self) -> list[Version]:
        """Return all versions, oldest first."""
        found = (read_json(path) for path in self._folder.glob(f"[!.]*/{_ABOUT}"))
        found_versions = filter(None, (Version.read(one) for one in found))
        return sorted(found_versions, key=lambda one: one.time)

    def current(self, model: Path) -> Version:
        """Return the version chosen last, or the model in its folder if it was trained again."""
        chosen = read_json(self._current)
        trained = content_hash(model)
        if chosen and chosen.get("model") == trained:
            version = Version.read(chosen.get("version"))
            if version and (self.path(version.version) / "manifest.json").exists():
                return version
        return self.adopt(model)

    def adopt(self, model: Path) -> Version:
        """Make a newly trained model the current version.

        All corrections are processed again, except those that were undone.
        """
        before = Version.read((read_json(self._current) or {}).get("version"))
        fresh = Version("", saved_at(model), before.version if before else None)
        version = self._known(content_hash(model)) or self.add(
            lambda place: _link(model, place), fresh
        )
        undone = before.undone if before else []
        version = replace(version, position=0, applied=0, refused=0, undone=undone)
        self.choose(version, model)
        return version

    def add(self, save: Callable[[Path], None], about: Version) -> Version:
        """Add a version that `save` writes, as a whole or not at all."""
        draft = self._folder / f".{secrets.token_hex(8)}.part"
        draft.mkdir()
        try:
            save(draft / _MODEL)
            about = replace(about, version=content_hash(draft / _MODEL))
            write_json(draft / _ABOUT, asdict(about))
            place = self._folder / about.version
            if not place.exists():
                os.replace(draft, place)
                sync_folder(self._folder)
            else:  # the same model once more
                write_json(place / _ABOUT, asdict(about))
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return about

    def choose(self, version: Version, model: Path) -> None:
        """Make a version the current one, until the model is trained again."""
        write_json(self._current, {"version": asdict(version), "model": content_hash(model)})

    def back(self, current: Version, wanted: str | None, last_number: int) -> Version:
        """Return an earlier version; later corrections are not learned again."""
        listed = {one.version: one for one in self.all()}
        target = listed.get(wanted or current.parent or "")
        if target is None or target.version == current.version:
            names = ", ".join(name for name in listed if name != current.version) or "none"
            raise ParameterError(
                f"there is no version {wanted!r} to return to; other versions: {names}"
                if wanted
                else f"{current.version} has no version before it; other versions: {names}"
            )
        after = (target.position + 1, last_number)
        return replace(target, position=last_number, undone=[*target.undone, after])

    def prune(self, current: Version, keep: int) -> None:
        """Remove the oldest versions, but not the current one or its parent."""
        versions = self.all()
        needed = {current.version, current.parent} | {one.version for one in versions[-keep:]}
        for one in versions:
            if one.version not in needed:
                shutil.rmtree(self._folder / one.version, ignore_errors=True)

    def _known(self, version: str) -> Version | None:
        found = read_json(self._folder / version / _ABOUT)
        return Version.read(found) if self.path(version).exists() else None


def now() -> str:
    """Return the current time in ISO format."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _link(model: Path, place: Path) -> None:
    """Put a model into a new folder: links to its arrays, which never change, and its manifest.

    A save that comes in between removes arrays; then the next manifest is tried.
    """
    for _ in range(10):
        manifest = (model / "manifest.json").read_bytes()
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        try:
            for entry in read_manifest(model)["arrays"]:
                _link_file(model / entry["file"], place / entry["file"])
        except FileNotFoundError:
            continue
        with (place / "manifest.json").open("xb") as file:
            file.write(manifest)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(place)
        if (model / "manifest.json").read_bytes() == manifest:
            return
    raise ModelNotFoundError(f"{model.name} is being replaced at the moment: try again")


def _link_file(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another file system
        shutil.copyfile(source, target)
