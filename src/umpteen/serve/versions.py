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
_DAMAGED = ".damaged"


@dataclass(frozen=True)
class Version:
    """A model and what it has learned from the journal.

    Corrections up to number `position` were processed: `applied` of them were learned, `refused`
    were not, as the model got worse. Corrections in the ranges `undone` (first, last), by a
    rollback, and `left_out`, as they were refused, are never learned.
    """

    version: str
    time: str
    parent: str | None = None
    position: int = 0
    applied: int = 0
    refused: int = 0
    undone: list[tuple[int, int]] = field(default_factory=list)
    left_out: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, record: dict[str, Any]) -> "Version":
        """Return the version of a record on disk; unknown fields of later releases are ignored."""
        given = {name: record[name] for name in cls.__dataclass_fields__ if name in record}
        for name in ("undone", "left_out"):
            given[name] = [(int(first), int(last)) for first, last in given.get(name, [])]
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
        return number > self.position and self.may_learn(number)

    def n_waiting(self, last: int) -> int:
        """Return how many corrections up to number `last` are still to be processed."""
        n, start = 0, self.position + 1
        for first, end in sorted([*self.undone, *self.left_out, (last + 1, last + 1)]):
            n += max(0, min(first, last + 1) - start)
            start = max(start, end + 1)
        return n

    def may_learn(self, number: int) -> bool:
        """Return whether a correction was neither undone nor refused."""
        return not any(first <= number <= last for first, last in (*self.undone, *self.left_out))

    def refuse(self, last: int, n_corrections: int) -> "Version":
        """Return this version after corrections up to number `last` were refused."""
        return replace(
            self, position=last, refused=self.refused + n_corrections,
            left_out=[*self.left_out, (self.position + 1, last)],
        )  # fmt: skip


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
        paths = self._folder.glob(f"[!.]*/{_ABOUT}")
        found = (read_json(path) for path in paths if not path.parent.name.endswith(_DAMAGED))
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

        All corrections are processed again, except those that were undone or refused.
        """
        before = Version.read((read_json(self._current) or {}).get("version"))
        fresh = Version("", saved_at(model), before.version if before else None)
        version = self._known(content_hash(model)) or self.add(
            lambda place: _link(model, place), fresh
        )
        version = replace(version, position=0, applied=0, refused=0, undone=[], left_out=[])
        if before:
            version = replace(
                version, undone=before.undone, left_out=before.left_out,
                refused=sum(last - first + 1 for first, last in before.left_out),
            )  # fmt: skip
        self.choose(version, model)
        return version

    def set_aside(self, version: str) -> None:
        """Keep a damaged version for whoever wants to look into it, but never use it again."""
        aside = self._folder / f"{version}{_DAMAGED}"
        shutil.rmtree(aside, ignore_errors=True)
        if (self._folder / version).exists():
            os.replace(self._folder / version, aside)
        sync_folder(self._folder)

    def damaged(self) -> list[str]:
        """Return the versions that were set aside, until someone removes their folders."""
        return sorted(one.name.removesuffix(_DAMAGED) for one in self._folder.glob(f"*{_DAMAGED}"))

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
