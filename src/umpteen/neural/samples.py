"""Samples to train on, and the validation split."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix

from umpteen import scratch
from umpteen.neural.augmentation import Augmentation
from umpteen.neural.inputs import Inputs
from umpteen.neural.network import Network
from umpteen.neural.ranks import Ranks
from umpteen.neural.run import Counters
from umpteen.neural.targets import Targets
from umpteen.splitting import validation_split
from umpteen.validation import Features

if TYPE_CHECKING:
    from umpteen.neural.training import Settings

Rows = npt.NDArray[np.intp]

_BLOCK_ROWS = 512
_MOST_NOISE_ROWS = 50_000


class Shuffled(ABC):
    """A collection that gives batches, in another order in each epoch."""

    @abstractmethod
    def __len__(self) -> int: ...

    def n_batches(self, size: int) -> int:
        """Return the number of batches of an epoch; the last may be smaller."""
        return -(-len(self) // size)

    def batches(self, epoch: int, settings: "Settings") -> list[Rows]:
        """Return the rows of each batch of an epoch, in an order that the seed decides."""
        order = np.random.default_rng([settings.seed, epoch]).permutation(len(self))
        size = settings.batch_size
        return [order[first : first + size] for first in range(0, len(order), size)]


@dataclass(frozen=True, eq=False)
class Samples(Shuffled):
    """Samples with their labels, as batches on a device."""

    X: Features
    Y: csr_matrix
    inputs: Inputs
    device: torch.device
    augmentation: Augmentation | None = None
    ranks: Ranks = field(default_factory=Ranks)  # each of which gets its share of every batch

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    def choose(self, rows: Rows) -> "Samples":
        """Return some of them."""
        return replace(self, X=scratch.rows_at(self.X, rows), Y=self.Y[rows])

    def batch(self, rows: Rows) -> tuple[Any, Targets]:
        """Return what the encoder takes, and what the head should answer, for this rank."""
        rows = self.ranks.share(rows)
        inputs = self.inputs.batch(self.X[rows], self.device)
        if self.augmentation is not None:
            inputs = self.augmentation(inputs)
        return inputs, Targets.of(self.Y[rows], self.device)

    def refresh_noise(self, network: Network, now: Counters) -> None:
        """Let a head that draws negatives by features see those of epochs 1, 2, 4, 8, ..."""
        head: Any = network.head
        if now.finished or now.epoch.bit_count() != 1 or not head.has_noise:
            return
        network.eval()
        plain, rows = replace(self, augmentation=None, ranks=Ranks()), np.arange(len(self))
        if len(rows) > _MOST_NOISE_ROWS:
            rows = np.sort(np.random.default_rng(now.epoch).choice(rows, _MOST_NOISE_ROWS, False))
        rows = self.ranks.share(rows)
        with torch.inference_mode():
            blocks = np.array_split(rows, max(1, len(rows) // _BLOCK_ROWS))
            features = torch.cat([network.encoder(plain.batch(block)[0]) for block in blocks])
        head.fit_noise(features, Targets.of(self.Y[rows], self.device))

    def precision(self) -> AbstractContextManager[Any]:
        """Use half precision in the block on a graphics card, where that is twice as fast."""
        on_card = self.device.type == "cuda"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=on_card)


@dataclass(frozen=True, eq=False)
class Validation:
    """The validation split, and how many labels each of its samples is asked for."""

    samples: Samples
    k: int

    def score(self, network: Network) -> float:
        """Return the precision at k."""
        network.eval()
        hits, ranks = 0, self.samples.ranks
        for first in range(0, len(self.samples), _BLOCK_ROWS):
            rows = np.arange(first, min(first + _BLOCK_ROWS, len(self.samples)))
            with torch.inference_mode(), self.samples.precision():
                labels, _ = network.topk(self.samples.batch(rows)[0], self.k)
            hits += _hits(labels.cpu().numpy(), self.samples.Y[ranks.share(rows)])
        return ranks.sum(hits) / (self.k * len(self.samples))


def split(
    samples: Samples, fraction: float, seed: int, k: int
) -> tuple[Samples, Validation | None]:
    """Return the samples to train on, and the validation split; None if there are few."""
    drawn = validation_split(samples.X, samples.Y, seed, fraction=fraction)
    if drawn is None:
        return samples, None
    rest, validation = (samples.choose(np.flatnonzero(rows)) for rows in (~drawn, drawn))
    return rest, Validation(replace(validation, augmentation=None), k)


def _hits(labels: npt.NDArray[np.int64], Y: csr_matrix) -> int:
    rows, ranks = np.nonzero(labels >= 0)
    return int((np.asarray(Y[rows, labels[rows, ranks]]) > 0).sum()) if len(rows) else 0
