"""The settings of `NeuralClassifier` that few users change."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from umpteen.base import Recipe
from umpteen.neural.optimizers import OPTIMIZERS, SCHEDULES
from umpteen.storage import storable

_POSITIVE = Interval(Real, 0, None, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


@storable
@dataclass(frozen=True)
class NetworkRecipe(Recipe):
    """How a network is trained, beyond its epochs, batches and learning rate.

    Parameters
    ----------
    optimizer : "adamw", with sparse Adam for tables, or "sgd", with momentum 0.9 but for tables.
    schedule : after the warm-up, the learning rate falls to 0 as a "cosine", or is "constant".
    warmup : share of all steps in which the learning rate rises.
    weight_decay : of matrices, not of vectors and tables.
    clip : greatest length of the gradient; None is any.
    averaging : share of the epochs, the last ones, over which weights are averaged, if training
        gets there.
    validation_fraction : share of the samples in the validation split, as
        `umpteen.splitting.validation_split` draws it.
    patience : training ends after so many epochs without a better precision on that split. The
        best epoch is kept.
    max_seconds : training ends after so many seconds.
    checkpoint_every : seconds between two checkpoints.
    all_labels : make the head for all labels from 0 on, where their numbers mean something to it
        (digits of a code), and not for those seen in training.

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
    }


def upgrade_from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Group the settings that were parameters of `NeuralClassifier` in a `NetworkRecipe`."""
    NetworkRecipe.gather(parameters)
