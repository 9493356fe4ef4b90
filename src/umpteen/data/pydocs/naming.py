"""Which dotted names people type, and which of several names of one object is the one."""

from collections.abc import Iterable


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
