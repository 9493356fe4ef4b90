"""The settings of `CoAttentionMIML` that few users change."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from umpteen.base import Recipe
from umpteen.storage import storable


@storable
@dataclass(frozen=True)
class MIMLRecipe(Recipe):
    """How labels are embedded, what is minimised, and when training ends.

    Parameters
    ----------
    loss : the paper names none. "list" draws the labels of a bag from the softmax of the bag's
        logits. "assigned" lets a label that is c times in a bag fall on the c instances with its
        largest masked logits, and has it compete there with the other labels. "auto" is the first
        without a mask and the second with one, each the better in large bags
        (docs/multi-instance.md has the figures and the reason).
    iterations : of Algorithm 1, which embeds labels among the instances. 20 is the paper's EAGLE,
        0 its EAGLE-0, the better one on bags of 50 and so the default.
    step : length of the pull in each of these iterations.
    center : subtract the mean of the instances before labels are embedded. Without that, the labels
        of large bags all point at the average instance.
    validation_fraction : share of the bags in the validation split, of 20 bags or more.
    patience : training ends after so many epochs without a better score on that split. The best
        epoch is kept.

    >>> MIMLRecipe(iterations=20).iterations
    20
    """

    loss: str = "auto"
    iterations: int = 0
    step: float = 0.1
    center: bool = True
    validation_fraction: float = 0.1
    patience: int = 5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions({"auto", "list", "assigned"})],
        "iterations": [Interval(Integral, 0, None, closed="left")],
        "step": [Interval(Real, 0, None, closed="neither")],
        "center": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
    }


def upgrade_from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Group the settings that were parameters of `CoAttentionMIML` in a `MIMLRecipe`."""
    MIMLRecipe.gather(parameters)
