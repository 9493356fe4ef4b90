"""Recipes: the numbers of a method that seldom need another value, in one object."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import validate_parameter_constraints

from umpteen import storage
from umpteen.errors import ParameterError

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
        name = type(self).__name__
        try:
            validate_parameter_constraints(self._parameter_constraints, asdict(self), name)
        except ValueError as error:
            raise ParameterError(str(error)) from None

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
        if deep and isinstance(self.recipe, Recipe):
            nested = asdict(self.recipe).items()
            parameters |= {_NESTED + name: value for name, value in nested}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters; those of the recipe have names of the form `recipe__name`."""
        nested = [_NESTED + each.name for each in fields(self._recipe_class)]
        changes = {
            name.removeprefix(_NESTED): parameters.pop(name)
            for name in nested
            if name in parameters
        }
        if changes:
            recipe = parameters.get("recipe", self.recipe) or self._recipe_class()
            parameters["recipe"] = replace(recipe, **changes)
        super().set_params(**parameters)
        return self

    def _used_recipe(self) -> Any:
        return self.recipe or self._recipe_class()
