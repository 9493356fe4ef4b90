"""Which classes may come out of a model folder, in which versions, and how one is found by name."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from importlib import import_module
from typing import Any, TypeAlias, TypeVar, overload

from umpteen.errors import MissingExtraError, ModelCorruptError, ModelVersionError

_Class = TypeVar("_Class", bound=type)

Members: TypeAlias = dict[str, Any]
Upgrade: TypeAlias = Callable[[Members, Members], object]

MOVED: dict[tuple[str, str], tuple[str, str]] = {
    ("umpteen.tagger.held_out", "HeldOut"): ("umpteen.tagger.calibration", "ValidatedAnswers"),
    ("umpteen.tagger.calibration", "HeldOut"): ("umpteen.tagger.calibration", "ValidatedAnswers"),
    ("umpteen.softmax.training", "Kept"): ("umpteen.softmax.training", "Checkpoint"),
    ("umpteen.siamese.boosted_judge", "BoostedJudge"): (
        "umpteen.siamese.companion",
        "DecisionTrees",
    ),
    **dict.fromkeys(
        (
            ("umpteen.siamese.quadratic_judge", "QuadraticJudge"),
            ("umpteen.siamese.ranker", "QuadraticRanker"),
            ("umpteen.ranking", "QuadraticRanker"),
        ),
        ("umpteen.ranking.quadratic", "QuadraticRanker"),
    ),
    ("umpteen.ensemble.boosted_trees", "BoostedTrees"): (
        "umpteen.ranking.boosted_trees",
        "BoostedTrees",
    ),
    ("umpteen.neural.recipes", "Recipe"): ("umpteen.neural.blueprints", "Blueprint"),
    ("umpteen.softmax.settings", "Recipe"): ("umpteen.softmax.settings", "SoftmaxRecipe"),
}
"""Where classes of ours went, as (module, name): old models name them by where they were."""

_OUR_MODULE = re.compile(r"umpteen(\.(?!__)\w+)+")


@dataclass(frozen=True, eq=False)
class Storable:
    """A class that a model folder may contain, and how its older versions are upgraded."""

    cls: type
    version: int = 1
    upgrades: Mapping[int, Upgrade] = field(default_factory=dict)

    def upgrade(self, version: Any, parameters: Members, state: Members, made_by: str) -> None:
        """Bring what an older version stored to this one, in place."""
        if type(version) is not int or version < 1:
            raise ModelCorruptError(
                f"a {self.cls.__name__} has the version {version!r}; expected 1 or more"
            )
        if version > self.version:
            raise ModelVersionError(
                f"its {self.cls.__name__} has version {version}, but this umpteen reads versions "
                f"up to {self.version}. {newer(made_by)}"
            )
        for step in range(version, self.version):
            if step in self.upgrades:
                self.upgrades[step](parameters, state)


_registered: dict[tuple[str, str], Storable] = {}  # by module and name


@overload
def storable(cls: _Class) -> _Class: ...
@overload
def storable(
    *, version: int = ..., upgrades: Mapping[int, Upgrade] | None = ...
) -> Callable[[_Class], _Class]: ...


def storable(cls: Any = None, *, version: int = 1, upgrades: Any = None) -> Any:
    """Allow a dataclass or a scikit-learn estimator inside saved models (a decorator).

    Subclasses of `ExtremeClassifier` are storable without it.

    **When a class changes**, models that were saved earlier must still load. A new field of a
    dataclass needs a default value; a new constructor parameter of an estimator already has one.
    If a field is renamed, removed or changes its meaning, increase `version` by one and pass the
    upgrade step from the previous version: `upgrades={1: function}`. The call
    `function(parameters, state)` changes the stored constructor parameters (empty for a
    dataclass) and the stored fields in place.

    >>> def in_percent(parameters, state):
    ...     state["shares"] = [100 * share for share in state["shares"]]
    >>> @storable(version=2, upgrades={1: in_percent})
    ... @dataclass
    ... class Shares:
    ...     shares: list[float]
    ...     unit: str = "%"
    """
    if cls is None:
        return lambda cls: _register(cls, version, upgrades or {})
    return _register(cls, version, {})


def _register(cls: Any, version: int, upgrades: Mapping[int, Upgrade]) -> Any:
    if not (is_dataclass(cls) or is_estimator(cls)):
        raise TypeError(
            f"{cls.__name__} is neither a dataclass nor an estimator; "
            "write @storable above @dataclass, not below"
        )
    _registered[_key(cls)] = Storable(cls, version, upgrades)
    return cls


def is_estimator(value: Any) -> bool:
    """Return whether its state is constructor parameters and attributes that end in `_`."""
    return hasattr(value, "get_params")


def is_fitted(name: str) -> bool:
    """Return whether an attribute of that name holds something learned."""
    return name.endswith("_") and not name.startswith("_")


def is_storable(value: Any) -> bool:
    """Return whether the class of `value` was registered."""
    return _key(type(value)) in _registered


def version_of(cls: type) -> int:
    """Return the version in which objects of a registered class are written."""
    return _registered[_key(cls)].version


def unsaved_parameters(cls: Any) -> frozenset[str]:
    """Return the constructor parameters that name files; they are neither saved nor loaded.

    An untrusted model must not choose which files are read or written.
    """
    return frozenset(getattr(cls, "_unsaved_parameters", ()))


def find_class(module: str, name: str, made_by: str = "") -> Storable:
    """Return the storable class of that name; of modules not yet imported, only ours."""
    module, name = MOVED.get((module, name), (module, name))
    found = _registered.get((module, name)) or _of_umpteen(module, name) or _by_name(name)
    if found is None or inspect.isabstract(found.cls):
        advice = "If it is a class of your own, import it before umpteen.load"
        if _OUR_MODULE.fullmatch(module):
            advice = newer(made_by)
        raise ModelCorruptError(
            f"the model holds a {name!r} of module {module!r}, which does not exist here. {advice}"
        )
    return found


def newer(made_by: str) -> str:
    """Return the advice for a model that this version cannot read."""
    here = import_module("umpteen").__version__
    return (
        f"The model was made by umpteen {made_by or 'of another version'}; this is {here}: "
        "pip install --upgrade umpteen"
    )


def _of_umpteen(module: str, name: str) -> Storable | None:
    if not _OUR_MODULE.fullmatch(module):
        return None
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("umpteen"):
            raise MissingExtraError(
                f"a model with a {name} needs {error.name!r}, which is not installed"
            ) from error
    return _registered.get((module, name)) or _public(name)


def _public(name: str) -> Storable | None:
    """A public class of ours, wherever it lives by now."""
    cls = getattr(import_module("umpteen"), name, None)
    return _registered.get(_key(cls)) if isinstance(cls, type) else None


def _by_name(name: str) -> Storable | None:
    """A class of the user's that was in another module (often `__main__`) when it was saved."""
    candidates = [found for (_, registered), found in _registered.items() if registered == name]
    return candidates[0] if len(candidates) == 1 else None


def _key(cls: type) -> tuple[str, str]:
    return cls.__module__, cls.__qualname__
