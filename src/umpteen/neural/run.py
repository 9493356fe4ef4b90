"""A training run: everything that changes while it goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from umpteen.neural.network import Network
from umpteen.neural.ranks import Ranks

Weights = dict[str, Tensor]


@dataclass
class Counters:
    """Counters of a run so far; `batch` counts within the epoch."""

    epoch: int = 0
    batch: int = 0
    loss_sum: float = 0.0  # of the epoch's batches so far
    losses: list[float] = field(default_factory=list)  # mean of each epoch
    scores: list[float] = field(default_factory=list)  # on the validation split, after each epoch
    best_epoch: int = -1  # the first with the best score
    n_averaged: int = 0
    seconds: float = 0.0
    finished: bool = False
    planned: int = 0  # epochs


@dataclass
class Run:
    """A network in training, and the best and averaged weights so far."""

    network: Network
    optimizers: list[Optimizer]
    counters: Counters = field(default_factory=Counters)
    best: Weights | None = None
    average: Weights | None = None
    ranks: Ranks = field(default_factory=Ranks)  # that have rows of the head, and all else alike

    def parameters(self) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
        """Return those that every rank has, and those of which each rank has other rows."""
        network = self.network
        if not self.ranks.are_many:
            return list(network.parameters()), []
        return list(network.encoder.parameters()), list(network.head.parameters())

    def plan(self, epochs: int, averaging: float) -> None:
        """Train up to so many epochs; a run that has done all that it was to do can have more."""
        now = self.counters
        if now.epoch == now.planned < epochs:
            now.finished = False
        if now.epoch < (1 - averaging) * epochs - 1e-9:  # only the last ones are averaged
            self.average, now.n_averaged = None, 0
        now.planned = epochs

    def share_buffers(self) -> None:
        """Use the running means of rank 0, as `DistributedDataParallel` does."""
        if self.ranks.are_many:
            self.ranks.copy_first(self.network.encoder.buffers())

    def keep_as_best(self) -> None:
        """Remember the weights of this moment."""
        self.best = _copied(self.network.state_dict(), self.best)

    def add_to_average(self) -> None:
        """Count the weights of this moment into their average."""
        now = {name: weights.detach() for name, weights in self.network.named_parameters()}
        self.counters.n_averaged += 1
        if self.average is None:
            self.average = _copied(now, None)
            return
        for name, weights in now.items():
            self.average[name].lerp_(weights, 1 / self.counters.n_averaged)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Give the network its averaged weights in the block, if there are any."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def settle(self) -> None:
        """Give the network the weights that are to stay."""
        if self.best is not None:
            self.network.load_state_dict(self.best)
        else:
            self._swap()
        self.best = self.average = None

    def _swap(self) -> None:
        if self.average is not None:
            for name, weights in self.network.named_parameters():
                weights.data, self.average[name] = self.average[name], weights.data


def _copied(weights: Weights, into: Weights | None) -> Weights:
    """A copy, in the memory of an earlier one where there is."""
    if into is None:
        return {name: tensor.detach().clone() for name, tensor in weights.items()}
    with torch.no_grad():
        for name, tensor in weights.items():
            into[name].copy_(tensor)
    return into
