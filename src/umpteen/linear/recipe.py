"""Settings of LabelTree that few users change."""

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
    """Settings of `LabelTree` for training its classifiers and for its scores.

    Parameters
    ----------
    loss : "squared_hinge", or the slower "logistic".
    tolerance, max_epochs : training of a classifier stops when no dual variable violates its
        condition by more than `tolerance`, or after `max_epochs` passes over its samples.
    hard_negatives : number of nodes per sample that learn from it as a negative, although none of
        its labels is below them: those that the layers above score best. With 0, a node learns
        only from samples with a label below it.
    upper_samples : maximum number of samples that a node above the leaves learns from; if it
        has more, that many are drawn at random. By default there is no limit: the root learns
        from all samples, which takes most of the memory of a task and, with many millions of
        samples, most of the time.
    path_weight : power of the path's probabilities in the score of a label.
    trust : whether to lower the scores of labels that were often wrong in training.
    label_text_share : share of the label features in the vectors that the tree is built from; the
        rest is the centroid of the label's samples.
    label_text_weight : weight of the cosine of sample and label features in the score; "auto" is
        the best one on the validation split.

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
    upper_samples: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions({"squared_hinge", "logistic"})],
        "tolerance": [Interval(Real, 0, None, closed="neither")],
        "max_epochs": [Interval(Integral, 1, 10_000, closed="both")],
        "hard_negatives": [Interval(Integral, 0, None, closed="left")],
        "upper_samples": [Interval(Integral, 1, None, closed="left"), None],
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
