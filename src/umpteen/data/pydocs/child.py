"""The program of the interpreter that `isolated` starts; it is run as a script.

It answers on its standard output with the collection, as `storing.encode` makes it.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from pathlib import Path
from types import ModuleType

_HERE = Path(__file__).resolve().parent
# Packages without their __init__, which would import much more than the collecting needs.
_BARE = {
    "umpteen": _HERE.parents[1],
    "umpteen.data": _HERE.parent,
    "umpteen.data.pydocs": _HERE,
}


class Libraries(DistributionFinder):
    """Finds the given libraries, each in its own folder, and nothing else in there."""

    def __init__(self, homes: Mapping[str, str]):
        self._homes = homes

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module in the folder of its library."""
        if name in _BARE:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(_BARE[name])]
            return spec
        return PathFinder.find_spec(name, [self._homes[name]]) if name in self._homes else None

    def find_distributions(
        self,
        context: DistributionFinder.Context = DistributionFinder.Context(),  # noqa: B008
    ) -> Iterable[Distribution]:
        """Find the metadata of the libraries."""
        folders = sorted(set(self._homes.values()))
        within = DistributionFinder.Context(name=context.name, path=folders)
        return MetadataPathFinder.find_distributions(within)


def main(request: str) -> None:
    """Collect the libraries that `request` names, and send them."""
    wanted = json.loads(request)
    if wanted["python"] != sys.version:
        sys.exit(f"this is Python {sys.version}, expected {wanted['python']}")
    answer = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints is no part of the answer
    sys.meta_path.insert(0, Libraries(wanted["homes"]))

    from umpteen.data.pydocs.collecting import collect_here
    from umpteen.data.pydocs.storing import encode

    with open(answer, "wb") as stream:
        stream.write(encode(collect_here()))


if __name__ == "__main__":
    main(sys.argv[1])
