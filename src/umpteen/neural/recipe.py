"""The settings of `NeuralClassifier` that few users change."""

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from umpteen.base import Recipe
from umpteen.neural.augmentation import AUGMENTATIONS
from umpteen.neural.optimizers import OPTIMIZERS, SCHEDULES
from umpteen.storage import storable

_POSITIVE = Interval(Real, 0, None, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


@storable
@dataclass(frozen=True)
class NetworkRecipe(Recipe):
    """Training settings of `NeuralClassifier` that few users change.

    Parameters
    ----------
    optimizer : "adamw", with sparse Adam for tables, or "sgd", with momentum 0.9 except for tables.
    schedule : the learning rate after the warm-up: "cosine" falls to 0, "constant" stays.
    warmup : share of all steps in which the learning rate rises.
    weight_decay : weight decay of matrices; vectors and tables have none.
    clip : maximum norm of the gradient; None is no limit.
    averaging : weights are averaged over this last share of the epochs, if training gets there.
    validation_fraction : share of the samples in the validation split (5,000 samples at most; none
        if there are fewer than 50 samples).
    patience : number of epochs without a better precision on that split after which training ends.
        The best epoch is kept.
    max_seconds : time limit of training.
    checkpoint_every : seconds between two checkpoints.
    all_labels : whether the head has outputs for all labels, instead of those seen in training.
        Use it if label ids have a meaning to the head (digits of a code).
    augment : what is done to images in training: "flip" mirrors half of them, "crop" moves each by
        up to an eighth of its side, "flip_crop" does both.

    >>> NetworkRecipe(patience=3).patience
    3
    """

    optimizer: str = "adamw"
    schedule: str = "cosine"
    warmup: float = 0.05
    weight_decay: float = 0.0
    clip: float | None = None
    averaging: float = 0.0
    validation_fraction: float = 0.1
    patience: int = 5
    max_seconds: float | None = None
    checkpoint_every: float = 300.0
    all_labels: bool = False
    augment: str | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "optimizer": [StrOptions(set(OPTIMIZERS))],
        "schedule": [StrOptions(set(SCHEDULES))],
        "warmup": [Interval(Real, 0, 1, closed="left")],
        "weight_decay": [_NOT_NEGATIVE],
        "clip": [_POSITIVE, None],
        "averaging": [Interval(Real, 0, 1, closed="both")],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "max_seconds": [_POSITIVE, None],
        "checkpoint_every": [_NOT_NEGATIVE],
        "all_labels": ["boolean"],
        "augment": [StrOptions(set(AUGMENTATIONS)), None],
    }


def upgrade_from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Group the settings that were parameters of `NeuralClassifier` in a `NetworkRecipe`."""
    NetworkRecipe.gather(parameters)


def upgrade_from_3(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Keep the scores that heads had, which were logits for some."""
    if state:
        state["log_scores_"] = False


def upgrade_from_2(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Leave out biases of labels, which cascades and sampled groups did not have."""
    head = state.get("head_")
    if head is not None and head.path.endswith((".CascadeHead", ".SamplingHead")):
        state["head_"] = replace(head, options={**head.options, "bias": False})
