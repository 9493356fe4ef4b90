"""How often labels occur, as the biases that a head begins with."""

import math
from typing import Any

import torch
from torch import Tensor

from umpteen.errors import LabelsError, LabelsShapeError


def frequencies_of(counts: Any, n_samples: int | None, n_labels: int) -> Tensor:
    """Return the share of samples that have each label, `(n_labels,)`, in float64.

    Half a sample is added to each, so that none is 0 or 1.

    >>> frequencies_of([0, 3], None, 2)
    tensor([0.1250, 0.8750], dtype=torch.float64)
    """
    try:
        found: Tensor = torch.as_tensor(counts, dtype=torch.float64, device="cpu")
        total = float(found.sum() if n_samples is None else n_samples)
    except (TypeError, ValueError, RuntimeError, OverflowError) as problem:
        raise LabelsError(
            f"counts or n_samples are no numbers of training samples ({problem!s:.80}): give an "
            "array with a number for each label, and a single number"
        ) from None
    if found.shape != (n_labels,):
        raise LabelsShapeError(
            f"counts have shape {tuple(found.shape)}; expected ({n_labels:,},), the number of "
            "training samples of each label"
        )
    if not (bool(((found >= 0) & found.isfinite()).all()) and 0 <= total < math.inf):
        raise LabelsError(
            "counts or n_samples are negative or not finite; expected numbers of training samples"
        )
    return (found.clamp(0, total) + 0.5) / (total + 1)


@torch.no_grad()
def set_bias(bias: Tensor, values: Tensor) -> None:
    """Give a bias these values, of any type and device."""
    bias.copy_(values.to(bias).view_as(bias))
