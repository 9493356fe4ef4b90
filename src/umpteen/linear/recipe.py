"""The settings of LabelTree that seldom need another value."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from umpteen.base import Recipe
from umpteen.storage import storable

_RENAMED = {"features_in_tree": "label_text_share", "features_in_score": "label_text_weight"}
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


@storable
@dataclass(frozen=True)
class TreeRecipe(Recipe):
    """How the classifiers of a `LabelTree` are trained, and what its scores are made of.

    Parameters
    ----------
    loss : "squared_hinge", or the slower "logistic".
    tolerance, max_epochs : training of a classifier stops when no dual variable violates its
        condition by more than `tolerance`, or after so many visits of all samples.
    hard_negatives : nodes per sample that learn from it although none of its labels is there: those
        that the layers above score best. 0 learns from the labels' own samples only.
    path_weight : power of the probabilities on the path to a label in its score.
    trust : lower the scores of labels that were often wrong in training.
    label_text_share : share of the label features in the vectors that the tree is grown from; the
        rest is the mean direction of the labels' samples.
    label_text_weight : weight of the cosine of sample and label features in the score; "auto" is
        the one that serves the validation split best.

    >>> TreeRecipe(loss="logistic").loss
    'logistic'
    """

    loss: str = "squared_hinge"
    tolerance: float = 0.3
    max_epochs: int = 20
    hard_negatives: int = 10
    path_weight: float = 0.35
    trust: bool = True
    label_text_share: float = 0.3
    label_text_weight: float | str = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions({"squared_hinge", "logistic"})],
        "tolerance": [Interval(Real, 0, None, closed="neither")],
        "max_epochs": [Interval(Integral, 1, 10_000, closed="both")],
        "hard_negatives": [Interval(Integral, 0, None, closed="left")],
        "path_weight": [_NOT_NEGATIVE],
        "trust": ["boolean"],
        "label_text_share": [Interval(Real, 0, 1, closed="both")],
        "label_text_weight": [_NOT_NEGATIVE, StrOptions({"auto"})],
    }


PLAIN = TreeRecipe(hard_negatives=0, path_weight=1.0, trust=False)  # as in the papers


def upgrade_from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Group what were parameters of `LabelTree` in a `TreeRecipe`."""
    for old, new in _RENAMED.items():
        if old in parameters:
            parameters[new] = parameters.pop(old)
    TreeRecipe.gather(parameters)
