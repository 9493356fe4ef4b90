"""The models that are served, by name; each may be replaced while requests run."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from umpteen.errors import ParameterError
from umpteen.serve.refusals import Refusal
from umpteen.serve.snapshot import Snapshot

_NAME = re.compile(r"[\w.+-]{1,100}")
RESERVED = ("projects",)  # of Annif's routes


class ServedModel:
    """A model folder and the version of it that answers now."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.snapshot = Snapshot.load(name, folder)


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
