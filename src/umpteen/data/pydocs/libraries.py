"""The libraries that are collected: versions, places, and the public names of their objects."""

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

_COLLECTED = ("numpy", "scipy", "scikit-learn")
_IMPORTED_AS = {"scikit-learn": "sklearn"}
_REQUIREMENT = re.compile(r"[\w.-]+")


class Library(NamedTuple):
    """An installed distribution: its version, and the folder that its package is in."""

    version: str
    module: str
    home: str


def libraries() -> dict[str, Library]:
    """Return the collected libraries by name, then what they require, without optional ones.

    >>> list(libraries())[:3]
    ['numpy', 'scipy', 'scikit-learn']
    """
    found: dict[str, Library] = {}
    waiting = list(_COLLECTED)
    for name in waiting:
        if name in found:
            continue
        try:
            installed = distribution(name)
        except PackageNotFoundError:  # required by other versions of Python only
            continue
        module = _IMPORTED_AS.get(name, name.replace("-", "_"))
        home = _home(module)
        if home is not None:
            found[name] = Library(installed.version, module, str(home))
        required = [line for line in installed.requires or [] if "extra ==" not in line]
        waiting += [match[0].lower() for line in required if (match := _REQUIREMENT.match(line))]
    return found


def is_public(name: str) -> bool:
    """Return whether no part of a dotted name starts with an underscore.

    >>> is_public("numpy.linalg.lstsq"), is_public("numpy.linalg._linalg.lstsq")
    (True, False)
    """
    return not any(part.startswith("_") for part in name.split("."))


def shortest(names: Iterable[str], own_name: str = "") -> str:
    """Return the name with the fewest dots, then the one that ends as the object is called.

    What is still equal goes by length, then by the alphabet.

    >>> shortest(["scipy.linalg.decomp_lu.lu", "scipy.linalg.lu"])
    'scipy.linalg.lu'
    >>> shortest(["numpy.abs", "numpy.absolute"], own_name="absolute")
    'numpy.absolute'
    """

    def rank(name: str) -> tuple[int, bool, int, str]:
        return name.count("."), name.rpartition(".")[2] != own_name, len(name), name

    return min(names, key=rank)


def _home(module: str) -> Path | None:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).resolve()
    return file.parent.parent if spec.submodule_search_locations else file.parent
