"""The kernel's draws as an operator of PyTorch, so that graphs with it can be compiled."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from umpteen.kernels.noise import (
    FrequencyArrays,
    MixtureArrays,
    draw_visits,
    log_prob_mixed_table,
)
from umpteen.kernels.noise_tree import NoiseArrays


@torch.library.custom_op("umpteen::noise_visits", mutates_args=())
def noise_visits(
    reduced: Tensor, classes: Tensor, seed: Tensor, noise: Sequence[Tensor], share: float, n: int
) -> tuple[Tensor, Tensor]:
    """Return the classes of samples and `n` that are drawn for each, and their log-probabilities.

    Both are `(samples, 1 + n)`, the own class first. `noise` is what `mixture` takes. The kernel
    works on the CPU; from other devices, a few numbers for each sample go there and back.
    """
    offsets = np.arange(len(classes) + 1)
    labels, logs = draw_visits(
        mixture(noise, share), reduced.cpu().numpy(), offsets[:-1].astype(np.int32), offsets,
        classes.cpu().numpy().astype(np.int32), n, int(seed),
    )  # fmt: skip
    return (
        torch.from_numpy(labels.astype(np.int64)).to(reduced.device),
        torch.from_numpy(logs).to(reduced.device),
    )


@noise_visits.register_fake
def _(
    reduced: Tensor, classes: Tensor, seed: Tensor, noise: Sequence[Tensor], share: float, n: int
) -> tuple[Tensor, Tensor]:
    shape = (reduced.shape[0], 1 + n)
    return reduced.new_empty(shape, dtype=torch.int64), reduced.new_empty(shape)


def log_noise_table(reduced: Tensor, noise: Sequence[Tensor], share: float) -> Tensor:
    """Return the log-probabilities of all classes, `(samples, n_classes)`."""
    table = log_prob_mixed_table(mixture(noise, share), reduced.cpu().numpy())
    return torch.from_numpy(table).to(reduced.device)


def mixture(noise: Sequence[Tensor], share: float) -> MixtureArrays:
    """Return what the kernels take, of the arrays of a tree and of frequencies, in their order."""
    arrays = [each.cpu().numpy() for each in noise]
    return MixtureArrays(NoiseArrays(*arrays[:4]), share, FrequencyArrays(*arrays[4:]))
