"""Which objectives there are, and what they go together with."""

from typing import Any

from umpteen.errors import ParameterError
from umpteen.kernels import sampled_softmax as kernel

OBJECTIVES = {
    "negative_sampling": kernel.NEGATIVE_SAMPLING,
    "nce": kernel.NCE,
    "one_vs_each": kernel.ONE_VS_EACH,
    "augment_reduce": kernel.AUGMENT_REDUCE,
    "sampled_softmax": kernel.SAMPLED_SOFTMAX,
    "softmax": kernel.SAMPLED_SOFTMAX,
}
_UNIFORM_ONLY = ("one_vs_each", "augment_reduce", "softmax")


def noise_for(objective: str, noise: Any) -> Any:
    """What "auto" means: a name, or a tree."""
    if not isinstance(noise, str) or noise != "auto":
        return noise
    return "uniform" if objective in _UNIFORM_ONLY else "tree"


def check_choices(objective: str, noise: Any, shared: bool, search: str) -> None:
    """Refuse what does not go together; `noise` as `noise_for` gives it."""
    if objective in _UNIFORM_ONLY and not (isinstance(noise, str) and noise == "uniform"):
        raise ParameterError(
            f"objective={objective!r} draws every class alike, by its definition: leave "
            f'noise="auto", or choose another objective for noise={noise!r}'
        )
    if shared and objective != "sampled_softmax":
        raise ParameterError(
            f"shared=True works with objective='sampled_softmax', not {objective!r}: only there "
            "the correction is made in training, where the batch is known"
        )
    if search == "beam" and isinstance(noise, str) and noise != "tree":
        raise ParameterError(
            f'search="beam" goes through the noise tree, but noise is {noise!r}: use '
            'search="exact" or noise="tree"'
        )
