"""Recipes: the numbers of a method that seldom need another value, in one object."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from umpteen import storage
from umpteen.errors import ParameterError
from umpteen.validation import check_settings

_NESTED = "recipe__"


@dataclass(frozen=True)
class Recipe:
    """The settings of one method that few users change; a base of frozen dataclasses.

    A method has its own, such as `TreeRecipe` of `LabelTree`, and takes it as `recipe=`; None is
    the one with all defaults. `get_params` and `set_params` know its fields as `recipe__loss` and
    so on, so that a grid search can try them.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __post_init__(self) -> None:
        for each in fields(self):
            if isinstance(value := getattr(self, each.name), list):
                object.__setattr__(self, each.name, tuple(value))
        check_settings(asdict(self), self._parameter_constraints, type(self).__name__)

    def _faults(self, sizes: storage.Sizes) -> Iterator[str]:
        """Yield errors of a loaded object."""
        return storage.refusals(self)

    @classmethod
    def gather(cls, parameters: dict[str, Any]) -> None:
        """Replace parameters of an older version, in place, by the recipe that they are now."""
        names = [each.name for each in fields(cls) if each.name in parameters]
        parameters["recipe"] = cls(**{name: parameters.pop(name) for name in names})


class HasRecipe(BaseEstimator):
    """A method with a parameter `recipe`, whose class is `_recipe_class`."""

    _recipe_class: ClassVar[type[Recipe]]
    recipe: Recipe | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; if `deep`, those of the recipe too, as `recipe__name`."""
        parameters: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(self.recipe, Recipe | None):
            nested = asdict(self._used_recipe()).items()
            parameters |= {_NESTED + name: value for name, value in nested}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; those of the recipe have names of the form `recipe__name`."""
        nested = [name for name in parameters if name.startswith(_NESTED)]
        changes = {name.removeprefix(_NESTED): parameters.pop(name) for name in nested}
        names = [each.name for each in fields(self._recipe_class)]
        if unknown := sorted(set(changes) - set(names)):
            raise ParameterError(
                f"{_NESTED}{unknown[0]} is not possible: {self._recipe_class.__name__} has {names}"
            )
        if changes:
            parameters["recipe"] = replace(
                self._checked_recipe(parameters.get("recipe", self.recipe)), **changes
            )
        super().set_params(**parameters)
        return self

    def _used_recipe(self) -> Any:
        return _default(self._recipe_class) if self.recipe is None else self.recipe  # type: ignore[arg-type]

    def _checked_recipe(self, recipe: Any) -> Any:
        if recipe is None:
            return _default(self._recipe_class)  # type: ignore[arg-type]
        if not isinstance(recipe, self._recipe_class):
            raise ParameterError(
                f"recipe={recipe!r} is not possible: expected a {self._recipe_class.__name__}"
            )
        return recipe


@cache
def _default(recipe_class: type[Recipe]) -> Recipe:
    """The recipe with all defaults; every prediction asks for it, and making one takes 0.2 ms."""
    return recipe_class()
