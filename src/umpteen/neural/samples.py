"""Samples to train on, and samples to judge by."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix

from umpteen.neural.inputs import Inputs
from umpteen.neural.network import Network
from umpteen.neural.targets import Targets
from umpteen.validation import Features

if TYPE_CHECKING:
    from umpteen.neural.training import Settings

Rows = npt.NDArray[np.intp]

FEW = 100  # below so many samples none are held out
_JUDGED_AT_A_TIME = 512


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples with their labels, as batches on a device."""

    X: Features
    Y: csr_matrix
    inputs: Inputs
    device: torch.device

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    def choose(self, rows: Rows) -> "Samples":
        """Some of them."""
        return Samples(self.X[rows], self.Y[rows], self.inputs, self.device)

    def n_batches(self, size: int) -> int:
        """Batches of an epoch; the last may be smaller."""
        return -(-len(self) // size)

    def batches(self, epoch: int, settings: "Settings") -> list[Rows]:
        """The rows of each batch of an epoch: its own order, by the seed alone."""
        order = np.random.default_rng([settings.seed, epoch]).permutation(len(self))
        size = settings.batch_size
        return [order[first : first + size] for first in range(0, len(order), size)]

    def batch(self, rows: Rows) -> tuple[Any, Targets]:
        """What the encoder takes, and what the head should answer."""
        return (
            self.inputs.batch(self.X[rows], self.device),
            Targets.of(self.Y[rows], self.device),
        )

    def precision(self) -> AbstractContextManager[Any]:
        """Half precision on a graphics card, where that is twice as fast."""
        on_card = self.device.type == "cuda"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=on_card)


@dataclass(frozen=True, eq=False)
class Judge:
    """Held-out samples, and how many labels each is asked for."""

    samples: Samples
    k: int

    def score(self, network: Network) -> float:
        """Precision at k."""
        network.eval()
        hits = 0
        for first in range(0, len(self.samples), _JUDGED_AT_A_TIME):
            rows = np.arange(first, min(first + _JUDGED_AT_A_TIME, len(self.samples)))
            with torch.inference_mode(), self.samples.precision():
                labels, _ = network.topk(self.samples.batch(rows)[0], self.k)
            hits += _hits(labels.cpu().numpy(), self.samples.Y[rows])
        return hits / (self.k * len(self.samples))


def hold_out(samples: Samples, fraction: float, seed: int, k: int) -> tuple[Samples, Judge | None]:
    """Samples to train on, and a judge with the others; none if there are few."""
    n_held_out = round(fraction * len(samples)) if len(samples) >= FEW else 0
    if n_held_out == 0:
        return samples, None
    order = np.random.default_rng([seed]).permutation(len(samples))
    held_out, rest = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
    return samples.choose(rest), Judge(samples.choose(held_out), k)


def _hits(labels: npt.NDArray[np.int64], Y: csr_matrix) -> int:
    rows, ranks = np.nonzero(labels >= 0)
    return int((np.asarray(Y[rows, labels[rows, ranks]]) > 0).sum()) if len(rows) else 0
