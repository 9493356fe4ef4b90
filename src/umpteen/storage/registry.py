"""Which classes may come out of a model folder, and how one is found by its name."""

import inspect
import re
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any, TypeVar

from umpteen.errors import MissingExtraError, ModelCorruptError

_Class = TypeVar("_Class", bound=type)

_storable: dict[tuple[str, str], type] = {}  # by module and name

_OUR_MODULE = re.compile(r"umpteen(\.(?!__)\w+)+")


def storable(cls: _Class) -> _Class:
    """Allow a dataclass or a scikit-learn estimator inside saved models (a decorator).

    Subclasses of `ExtremeClassifier` are storable without it.
    """
    if not (is_dataclass(cls) or is_estimator(cls)):
        raise TypeError(
            f"{cls.__name__} is neither a dataclass nor an estimator; "
            "write @storable above @dataclass, not below"
        )
    _storable[_key(cls)] = cls
    return cls


def is_estimator(value: Any) -> bool:
    """Whether its state is constructor parameters and attributes that end in `_`."""
    return hasattr(value, "get_params")


def is_fitted(name: str) -> bool:
    """Whether an attribute of that name holds something learned."""
    return name.endswith("_") and not name.startswith("_")


def is_storable(value: Any) -> bool:
    """Whether the class of `value` was registered."""
    return _key(type(value)) in _storable


def find_class(module: str, name: str) -> type:
    """The storable class of that name; of modules not yet imported, only ours are."""
    cls = _storable.get((module, name)) or _of_umpteen(module, name) or _by_name(name)
    if cls is None or inspect.isabstract(cls):
        raise ModelCorruptError(
            f"the model holds a {name!r} of module {module!r}, which is not known here. If it is "
            "a class of your own, import it before umpteen.load; otherwise upgrade umpteen"
        )
    return cls


def _of_umpteen(module: str, name: str) -> type | None:
    if not _OUR_MODULE.fullmatch(module):
        return None
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("umpteen"):
            raise MissingExtraError(
                f"a model with a {name} needs {error.name!r}, which is not installed"
            ) from error
    return _storable.get((module, name)) or _public(name)


def _public(name: str) -> type | None:
    """A public class of ours, wherever it lives by now."""
    cls = getattr(import_module("umpteen"), name, None)
    return cls if cls in _storable.values() else None


def _by_name(name: str) -> type | None:
    """A class of the user's that was in another module (often `__main__`) when it was saved."""
    candidates = [cls for (_, known), cls in _storable.items() if known == name]
    return candidates[0] if len(candidates) == 1 else None


def _key(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__
