"""Model folders."""

from os import PathLike
from typing import Any


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write `model` into the folder `path`."""


def load(path: str | PathLike[str], *, mmap: bool = True, verify: bool = False) -> Any:
    """The model saved at `path`."""
