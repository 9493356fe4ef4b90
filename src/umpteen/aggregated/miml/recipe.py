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
    """Settings of `CoAttentionMIML`: label embeddings, loss and early stopping.

    Parameters
    ----------
    loss : the paper does not name one. "list" treats the labels of a bag as drawn from the softmax
        of the bag's logits. "assigned" assigns a label that occurs c times in a bag to the c
        instances with its largest masked logits, where it competes with the other labels. "sigmoid"
        asks for each label whether it occurs in the bag, and ignores counts. "auto" is
        "list" without a mask and "assigned" with one. "assigned" was the best loss in bags of 50
        (papers/eagle/README.md has the figures and the reason).
    iterations : number of iterations of Algorithm 1, which embeds labels in the space of the
        instances. 20 is the paper's EAGLE. The default, 0, is its EAGLE-0, which is better on
        bags of 50.
    step : length of the step in each of these iterations.
    center : subtract the mean of the instances before labels are embedded. Otherwise all labels of
        large bags point at the average instance.
    validation_fraction : share of the bags in the validation split, if there are at least 20 bags.
    patience : number of epochs without a better score on that split after which training ends. The
        best epoch is kept.

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
        "loss": [StrOptions({"auto", "list", "assigned", "sigmoid"})],
        "iterations": [Interval(Integral, 0, None, closed="left")],
        "step": [Interval(Real, 0, 1e6, closed="right")],
        "center": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
    }


def upgrade_from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Group the settings that were parameters of `CoAttentionMIML` in a `MIMLRecipe`."""
    MIMLRecipe.gather(parameters)
