"""The models that are served, by name; each may be replaced while requests run."""

import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from umpteen.errors import ParameterError
from umpteen.serve.learning import Outcome
from umpteen.serve.refusals import Refusal
from umpteen.serve.snapshot import Snapshot
from umpteen.serve.state import State
from umpteen.serve.versions import Version

RESERVED = ("projects",)  # of Annif's routes
_NAME = re.compile(r"[\w.+-]{1,100}")


class ServedModel:
    """A model folder, the version that answers now, and how it is replaced.

    `snapshot` is replaced in one step; whoever took the old one keeps it. Without a `state`, the
    model does not learn, and nothing is written.
    """

    def __init__(self, name: str, folder: Path, state: State | None = None) -> None:
        self.name, self.folder, self.state = name, folder, state
        self._changing = threading.RLock()
        self.current = Version("", "") if state is None else state.versions.current(folder)
        self.snapshot = self._load(self.current)

    @property
    def learns(self) -> bool:
        """Whether corrections will change the model."""
        return self.state is not None and len(self.snapshot.tagger.replay_) > 0

    def reload(self) -> bool:
        """Take the model that is in the folder now; return whether it is another one."""
        with self._changing:
            if self.state is None:
                return self._swap(Snapshot.load(self.name, self.folder), self.current)
            current = self.state.versions.current(self.folder)
            if current.version == self.snapshot.version:
                return False
            return self._swap(self._load(current), current)

    def adopt(self, outcome: Outcome, learned_from: Version) -> bool:
        """Take what came of learning, unless the model was replaced meanwhile."""
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
        """Return all versions that are on disk, the newest first."""
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
        """Return the state, or refuse: a model without one is not changed."""
        if self.state is None:
            raise Refusal(
                403, f"{self.name} is served with --no-learn: nothing about it can be changed here"
            )
        return self.state

    def _load(self, version: Version) -> Snapshot:
        if self.state is None:
            return Snapshot.load(self.name, self.folder)
        loaded = Snapshot.load(self.name, self.state.versions.path(version.version))
        return replace(loaded, trained=version.time)

    def _swap(self, snapshot: Snapshot, current: Version) -> bool:
        changed = snapshot.version != self.snapshot.version
        self.current, self.snapshot = current, snapshot
        return changed


class Models(Mapping[str, ServedModel]):
    """All models that are served, in the order in which they were given."""

    def __init__(self, served: Iterable[ServedModel]) -> None:
        self._served = {model.name: model for model in served}

    def __getitem__(self, name: str) -> ServedModel:
        if name not in self._served:
            names = ", ".join(self._served)
            raise Refusal(404, f"there is no model {name[:100]!r}; there are: {names}")
        return self._served[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._served)

    def __len__(self) -> int:
        return len(self._served)


def named_folders(given: Iterable[str]) -> dict[str, Path]:
    """Return the folders of models by name: that of the folder, or as in `name=folder`.

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
                f"{name!r} cannot be the name of a model; expected letters, digits, '.', '_' and "
                f"'-', and not {' or '.join(RESERVED)}: give it another, as in name={folder}"
            )
        if name in found:
            raise ParameterError(
                f"two models are called {name!r}; give one of them another name, as in "
                f"name={folder}"
            )
        found[name] = Path(folder)
    return found
