"""How often labels occur, as the biases that a head begins with."""

from numbers import Real
from typing import Any

import torch
from torch import Tensor

from umpteen.errors import LabelsError, LabelsShapeError, ParameterError


def frequencies_of(counts: Any, n_samples: int | None, n_labels: int) -> Tensor:
    """Return the share of samples that have each label, `(n_labels,)`, in float64.

    Half a sample is added to each, so that none is 0 or 1.

    >>> frequencies_of([0, 3], None, 2)
    tensor([0.1250, 0.8750], dtype=torch.float64)
    """
    found = _numbers(counts)
    if n_samples is not None and not isinstance(n_samples, Real):
        raise ParameterError(
            f"n_samples={n_samples!r} is not possible: use the number of training samples, or None"
        )
    if found.shape != (n_labels,):
        raise LabelsShapeError(
            f"counts have shape {tuple(found.shape)}; expected ({n_labels:,},), the number of "
            "training samples of each label"
        )
    if not bool(((found >= 0) & found.isfinite()).all()) or not (n_samples or 0) >= 0:
        raise LabelsError(
            "counts or n_samples are negative or not finite; expected numbers of training samples"
        )
    total = float(found.sum()) if n_samples is None else float(n_samples)
    return (found.clamp(0, total) + 0.5) / (total + 1)


def _numbers(counts: Any) -> Tensor:
    try:
        return torch.as_tensor(counts, dtype=torch.float64, device="cpu").detach()
    except (TypeError, ValueError, OverflowError, RuntimeError) as problem:
        raise LabelsError(
            f"counts are {counts!r:.60}, which are no numbers ({problem!s:.80}): give the number "
            "of training samples of each label, such as Y.getnnz(axis=0) of a sparse Y"
        ) from None


@torch.no_grad()
def set_bias(bias: Tensor, values: Tensor) -> None:
    """Give a bias these values, of any type and device."""
    bias.copy_(values.to(bias).view_as(bias))
