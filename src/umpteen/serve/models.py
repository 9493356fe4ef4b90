"""The served models by name; each can be replaced while requests run."""

import logging
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from umpteen.errors import ParameterError, UmpteenError
from umpteen.serve.learning import Outcome
from umpteen.serve.refusals import Refusal
from umpteen.serve.snapshot import Snapshot, content_hash
from umpteen.serve.state import State
from umpteen.serve.versions import Version

_LOG = logging.getLogger("umpteen.serve")
RESERVED = ("projects",)  # of Annif's routes
_NAME = re.compile(r"[\w.+-]{1,100}")


class ServedModel:
    """A model folder, the version in use, and how it is replaced.

    `snapshot` is replaced in one step; a running request keeps the old one. Without a `state`, the
    model does not learn, and nothing is written.
    """

    def __init__(self, name: str, folder: Path, state: State | None = None) -> None:
        self.name, self.folder, self.state = name, folder, state
        self._changing = threading.RLock()
        self.current = Version("", "") if state is None else state.versions.current(folder)
        try:
            self.snapshot = self._load(self.current)
        except (UmpteenError, OSError) as problem:
            self.snapshot = self._load_trained(problem)

    @property
    def learns(self) -> bool:
        """Whether corrections will change the model."""
        return self.state is not None and len(self.snapshot.tagger.replay_) > 0

    def reload(self) -> bool:
        """Load the model again if its folder has changed; return whether it has."""
        with self._changing:
            if self.state is None:
                return self._swap(Snapshot.load(self.name, self.folder), self.current)
            current = self.state.versions.current(self.folder)
            if current.version == self.snapshot.version:
                return False
            return self._swap(self._load(current), current)

    def adopt(self, outcome: Outcome, learned_from: Version) -> bool:
        """Use the outcome of learning, unless the model was replaced meanwhile."""
        state = self.writable_state()
        with self._changing:
            if self.current is not learned_from:
                return False
            is_new = outcome.version.version != self.snapshot.version
            snapshot = self._load(outcome.version) if is_new else self.snapshot
            state.versions.choose(outcome.version, self.folder)
            if outcome.corrections:
                state.log(outcome.to_dict())
            self._swap(snapshot, outcome.version)
            state.versions.prune(outcome.version, state.keep_versions)
            return True

    def roll_back(self, wanted: str | None = None) -> Version:
        """Return to an earlier version; corrections that came after it are not learned again."""
        state = self.writable_state()
        with self._changing:
            target = state.versions.back(self.current, wanted, state.journal.last_number)
            snapshot = self._load(target)
            state.versions.choose(target, self.folder)
            self._swap(snapshot, target)
            return target

    def versions(self) -> list[dict[str, Any]]:
        """Return all versions on disk, newest first."""
        answering = self.snapshot
        if self.state is None:
            listed = [replace(self.current, version=answering.version, time=answering.trained)]
        else:
            listed = self.state.versions.all()
        return [
            {"version": one.version, "time": one.time, "current": one.version == answering.version}
            for one in reversed(listed)
        ]

    def writable_state(self) -> State:
        """Return the state; refuse if the model has none, as it cannot be changed."""
        if self.state is None:
            raise Refusal(403, f"{self.name} is served with --no-learn, so it cannot be changed")
        return self.state

    def _load(self, version: Version) -> Snapshot:
        if self.state is None:
            return Snapshot.load(self.name, self.folder)
        loaded = Snapshot.load(self.name, self.state.versions.path(version.version))
        return replace(loaded, trained=version.time)

    def _load_trained(self, problem: Exception) -> Snapshot:
        """Load the model in its folder if a version that learned from corrections is damaged."""
        damaged = self.current.version
        if self.state is None or damaged == content_hash(self.folder):
            raise problem
        intact = Snapshot.load(self.name, self.folder)  # or the server does not start
        self.state.versions.set_aside(damaged)
        self.current = self.state.versions.adopt(self.folder)
        _LOG.error(
            "%s: VERSION %s IS DAMAGED (%s). The model that was trained, %s, answers instead, and "
            "learns the corrections in the journal again. The damaged files are in %s.",
            self.name, damaged, problem, intact.version, self.state.folder / "versions",
        )  # fmt: skip
        return intact

    def _swap(self, snapshot: Snapshot, current: Version) -> bool:
        changed = snapshot.version != self.snapshot.version
        self.current, self.snapshot = current, snapshot
        return changed


class Models(Mapping[str, ServedModel]):
    """All served models, in the order in which they were given."""

    def __init__(self, served: Iterable[ServedModel]) -> None:
        self._served = {model.name: model for model in served}

    def __getitem__(self, name: str) -> ServedModel:
        if name not in self._served:
            names = ", ".join(self._served)
            raise Refusal(404, f"there is no model {name[:100]!r}; the models are {names}")
        return self._served[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._served)

    def __len__(self) -> int:
        return len(self._served)


def named_folders(given: Iterable[str]) -> dict[str, Path]:
    """Return the folders by model name: `name` of `name=folder`, or the name of the folder.

    >>> named_folders(["models/recipes", "news=/data/model-7"])
    {'recipes': PosixPath('models/recipes'), 'news': PosixPath('/data/model-7')}
    """
    found: dict[str, Path] = {}
    for one in given:
        name, equals, folder = one.partition("=")
        if not equals or not _NAME.fullmatch(name):
            folder, name = one, Path(one).resolve().name
        if not _NAME.fullmatch(name) or name in RESERVED:
            raise ParameterError(
                f"{name!r} cannot be the name of a model; expected letters, digits, '.', '_', '+' "
                f"and '-', but not {' or '.join(RESERVED)}: choose another, as in name={folder}"
            )
        if name in found:
            raise ParameterError(
                f"two models are called {name!r}: choose another name for one, as in name={folder}"
            )
        found[name] = Path(folder)
    return found
