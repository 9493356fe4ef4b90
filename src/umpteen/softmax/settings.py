"""Settings of AdversarialSoftmax: objectives, the noise they go with, and the training recipe."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from scipy.sparse import issparse
from sklearn.utils._param_validation import Interval, StrOptions

from umpteen.base import Recipe
from umpteen.errors import ParameterError
from umpteen.kernels import sampled_softmax as kernel
from umpteen.storage import storable
from umpteen.validation import Features

OBJECTIVES = {
    "negative_sampling": kernel.NEGATIVE_SAMPLING,
    "nce": kernel.NCE,
    "one_vs_each": kernel.ONE_VS_EACH,
    "augment_reduce": kernel.AUGMENT_REDUCE,
    "sampled_softmax": kernel.SAMPLED_SOFTMAX,
    "softmax": kernel.SAMPLED_SOFTMAX,
}
_UNIFORM_ONLY = ("one_vs_each", "augment_reduce", "softmax")
_COUNT = [Interval(Integral, 1, None, closed="left")]
_SIZE = [Interval(Real, 0, None, closed="left")]
_SHARE = [Interval(Real, 0, 1, closed="left")]


@storable
@dataclass(frozen=True)
class SoftmaxRecipe(Recipe):
    """Training settings of `AdversarialSoftmax` that few users change.

    Parameters
    ----------
    batch_size : number of samples in a step of Adagrad.
    regularizer : penalty on squared scores (Eq. 6), including the log-probabilities of the noise.
        With `centroid_scale="auto"`, relative to the square of a tenth of the scale.
    centroid_scale : initial scores are `centroid_scale` times the cosine of a sample and the
        centroid of a class; 0 starts at zero, as in the paper. "auto" is 10 for sparse rows, and
        for dense rows the value with the highest likelihood on the validation split.
    frequency_share : share of negatives that are drawn by frequency if a tree draws the others;
        this keeps the noise from being overconfident.
    validation_fraction : share of the samples in the validation split (2,000 samples at most; none
        if there are fewer than 20 samples).
    patience : number of epochs without a better precision at 1 on the validation split after which
        training ends. The best epoch is kept, or the initial weights if no epoch was better. As
        long as none is better, each epoch starts from the initial weights again, with a third of
        the learning rate.
    calibrate : whether to fit a temperature, the weight of the classes' frequencies and a bend to
        the validation split.
    max_seconds : time limit of training, without fitting the tree. Only this setting makes a result
        depend on the machine.

    >>> SoftmaxRecipe(patience=5).patience
    5
    """

    batch_size: int = 100
    regularizer: float = 1e-2
    centroid_scale: float | str = "auto"
    frequency_share: float = 0.3
    validation_fraction: float = 0.05
    patience: int = 3
    calibrate: bool = True
    max_seconds: float | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "batch_size": _COUNT,
        "regularizer": _SIZE,
        "centroid_scale": [*_SIZE, StrOptions({"auto"})],
        "frequency_share": _SHARE,
        "validation_fraction": _SHARE,
        "patience": _COUNT,
        "calibrate": ["boolean"],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
    }


def resolve_noise(objective: str, noise: Any, X: Features) -> Any:
    """Return what `noise="auto"` means for an objective and features; other noise as it is."""
    if not isinstance(noise, str) or noise != "auto":
        return noise
    if objective in _UNIFORM_ONLY:
        return "uniform"
    return "frequency" if issparse(X) else "tree"


def check_combination(objective: str, noise: Any, beam_width: int | None) -> None:
    """Refuse settings that contradict each other; `noise` as `resolve_noise` returns it."""
    if objective in _UNIFORM_ONLY and not (isinstance(noise, str) and noise == "uniform"):
        raise ParameterError(
            f"objective={objective!r} is defined with uniform noise: leave "
            f'noise="auto", or choose another objective for noise={noise!r}'
        )
    if beam_width is not None and isinstance(noise, str) and noise != "tree":
        raise ParameterError(
            f"beam_width={beam_width} searches the noise tree, but noise is {noise!r}: use "
            'noise="tree", or beam_width=None to compare all classes'
        )


def upgrade_from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Group the numbers of training, which were parameters of their own, in a `SoftmaxRecipe`."""
    for removed in ("shared", "refresh_after"):
        parameters.pop(removed, None)
    if parameters.pop("search", "exact") == "exact":
        parameters["beam_width"] = None
    noise, objective = parameters.get("noise", "auto"), parameters.get("objective")
    if isinstance(noise, str) and noise == "auto" and objective not in _UNIFORM_ONLY:
        parameters["noise"] = "tree"
    SoftmaxRecipe.gather(parameters)


def upgrade_from_2(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Set the calibration of models that were not calibrated: none."""
    state.setdefault("temperature_", 1.0)
    state.setdefault("prior_weight_", 0.0)


def upgrade_from_3(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    """Set the bend of models whose calibration had none."""
    state.setdefault("bend_", 0.0)
