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
    """Settings of `Eagle` for its first label embeddings and for its rounds.

    Parameters
    ----------
    iterations, step : number and length of the steps of Algorithm 1, see
        `group_label_embeddings`. More iterations helped only without a background; the paper has
        20.
    background : "none" as in the paper; "mean" subtracts the mean from every sample; "directions"
        also shrinks the main directions of the groups, by the amount that predicts the labels of
        validation groups best.
    n_directions : number of directions to shrink.
    folds : number of folds of the groups; each solver of a round is trained on all but one fold.
    compare : whether validation groups decide between the rounds, the first assignment, and all
        labels of the groups.
    unlabelled : "drop" leaves samples without an assigned label out of the training; "keep" uses
        them as negatives of all labels, because Algorithm 2 returns all of X.
    merge : weight of a group in the first embedding of a label: its count in the group ("list"), or
        1 ("set").

    >>> EagleRecipe(background="mean").background
    'mean'
    """

    iterations: int = 0
    step: float = 0.1
    background: str = "directions"
    n_directions: int = 64
    folds: int = 3
    compare: bool = True
    unlabelled: str = "drop"
    merge: str = "list"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "iterations": [Interval(Integral, 0, None, closed="left")],
        "step": [Interval(Real, 0, 1e6, closed="right")],
        "background": [StrOptions({"none", "mean", "directions"})],
        "n_directions": [Interval(Integral, 0, None, closed="left")],
        "folds": [Interval(Integral, 2, None, closed="left")],
        "compare": ["boolean"],
        "unlabelled": [StrOptions({"drop", "keep"})],
        "merge": [StrOptions({"list", "set"})],
    }


def upgrade_from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Group what were parameters of `Eagle` in an `EagleRecipe`."""
    EagleRecipe.gather(parameters)


def upgrade_from_2(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Set what was done before there was a choice."""
    state["chosen_"] = "rounds" if state["agreement_"] else "first"
    state["samples_per_label_"] = parameters["samples_per_label"]
