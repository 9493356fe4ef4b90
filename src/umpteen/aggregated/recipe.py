"""The settings of Eagle that seldom need another value."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from umpteen.base import Recipe
from umpteen.storage import storable


@storable
@dataclass(frozen=True)
class EagleRecipe(Recipe):
    """How `Eagle` finds its first embeddings of labels, and how it validates each round.

    Parameters
    ----------
    iterations, step : of Algorithm 1, see `group_label_embeddings`. More iterations helped only
        without a background; the paper has 20.
    background : "none" as in the paper, "mean" (taken off every sample) or "directions": the main
        directions of the groups are shrunk too, as much as predicts the labels of validation groups
        best.
    n_directions : how many directions.
    folds : solvers of a round are trained on all but one of so many folds of the groups.

    >>> EagleRecipe(background="mean").background
    'mean'
    """

    iterations: int = 0
    step: float = 0.1
    background: str = "directions"
    n_directions: int = 64
    folds: int = 4

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "iterations": [Interval(Integral, 0, None, closed="left")],
        "step": [Interval(Real, 0, None, closed="neither")],
        "background": [StrOptions({"none", "mean", "directions"})],
        "n_directions": [Interval(Integral, 0, None, closed="left")],
        "folds": [Interval(Integral, 2, None, closed="left")],
    }


def upgrade_from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Group what were parameters of `Eagle` in an `EagleRecipe`."""
    EagleRecipe.gather(parameters)
