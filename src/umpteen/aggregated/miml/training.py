"""Training of the network on bags, by the loop of `umpteen.neural`, with a validation split."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from umpteen.aggregated.miml.losses import LOSSES, Target
from umpteen.aggregated.miml.mask import affinities, assignment_mask
from umpteen.aggregated.miml.network import Floats, as_layers, as_tensor, instance_logits
from umpteen.neural.checkpoint import Keeper
from umpteen.neural.optimizers import make_optimizers
from umpteen.neural.run import Run
from umpteen.neural.samples import Shuffled
from umpteen.neural.training import Settings, train
from umpteen.progress import Verbose, progress_bar
from umpteen.splitting import validation_split
from umpteen.validation import Features

Bags = npt.NDArray[np.intp]

_FEWEST_BAGS = 20


@dataclass(frozen=True, eq=False)
class BagBatch:
    """The instances of some bags, bag after bag."""

    x: Tensor  # (instances, features)
    mask: Tensor | None  # (instances, labels); None is all ones
    sizes: Tensor  # (bags,)


@dataclass(frozen=True, eq=False)
class BagSamples(Shuffled):
    """Bags of at least one instance each, and the counts of their labels."""

    X: Features  # (instances, features), in rows of unit length
    groups: csr_matrix  # (bags, instances)
    counts: csr_matrix  # (bags, labels)
    embeddings: Features | None  # (labels, features); None is no mask
    temperature: float
    scale: float  # of the instances: their entries are near 1 then, as weights are drawn for
    device: torch.device

    def __len__(self) -> int:
        return int(self.groups.shape[0])

    def choose(self, bags: Bags) -> "BagSamples":
        """Return some of the bags."""
        return replace(self, groups=self.groups[bags], counts=self.counts[bags])

    def batch(self, rows: Bags) -> tuple[BagBatch, Target]:
        """Return some bags, and their labels."""
        members = self.groups[rows]
        sizes = np.diff(members.indptr).astype(np.int64)
        mask = None
        if self.embeddings is not None and self.temperature and sizes.max() > 1:
            found = affinities(self.X[members.indices], self.embeddings)
            mask = torch.from_numpy(assignment_mask(found, sizes, self.temperature))
            mask = mask.to(self.device)
        sizes_there = torch.from_numpy(sizes).to(self.device)
        target = Target.of(self.counts[rows], self.device)
        return BagBatch(self.instances(members), mask, sizes_there), target

    def instances(self, members: csr_matrix) -> Tensor:
        """Return the rows of the instances of some bags, as the network takes them."""
        return as_tensor(self.X[members.indices] * np.float32(self.scale), self.device)

    def precision(self) -> AbstractContextManager[Any]:
        """Use single precision in the block."""
        return nullcontext()


class BagNetwork(nn.Module):
    """Layers that give each instance logits, and the loss of bags of them."""

    def __init__(
        self, coefs: list[Floats], intercepts: list[Floats], n_concepts: int, loss: str
    ) -> None:
        super().__init__()
        layers = as_layers(coefs, intercepts, torch.device("cpu"))
        self.weights = nn.ParameterList(nn.Parameter(weights) for weights, _ in layers)
        self.biases = nn.ParameterList(nn.Parameter(biases) for _, biases in layers)
        self.n_concepts, self.loss_name = n_concepts, loss

    def forward(self, x: Tensor) -> Tensor:
        layers = list(zip(self.weights, self.biases, strict=True))
        return instance_logits(x, layers, self.n_concepts)

    def loss(self, batch: BagBatch, target: Target) -> Tensor:
        """Return the mean loss of some bags."""
        return LOSSES[self.loss_name](self(batch.x), batch.mask, batch.sizes, target)


@dataclass(frozen=True, eq=False)
class BagValidation:
    """The bags of the validation split."""

    samples: BagSamples
    batch_size: int

    def score(self, network: nn.Module) -> float:
        """Return how well the labels named for instances account for what tells bags apart.

        Each instance names as many labels as instances have on average, at least one. How often a
        label was named in a bag and how often the bag's list holds it, both relative to the average
        bag: their correlation over all bags and labels, at most 1. Needs no label of an instance,
        and unlike the overlap of both is not impressed by labels that are merely named about as
        often as they occur.
        """
        named, counts = csr_matrix(sparse.vstack(list(self._named(network)))), self.samples.counts
        spread = _covariance(named, named) * _covariance(counts, counts)
        return _covariance(named, counts) / float(np.sqrt(spread)) if spread > 0 else 0.0

    def _named(self, network: nn.Module) -> Iterator[csr_matrix]:
        """How often each label is among the best of an instance, per bag; batch after batch."""
        counts, groups = self.samples.counts, self.samples.groups
        per_instance = max(1, round(counts.sum() / groups.nnz))
        n_labels = counts.shape[1]
        for first in range(0, groups.shape[0], self.batch_size):
            members = groups[first : first + self.batch_size]
            with torch.no_grad():
                logits = network(self.samples.instances(members))
                best = logits.topk(min(per_instance, n_labels), dim=1).indices.cpu().numpy()
            n_bags = members.shape[0]
            of_bag = np.repeat(np.arange(n_bags), np.diff(members.indptr) * best.shape[1])
            ones = np.ones(best.size, np.float32)
            yield csr_matrix((ones, (of_bag, best.ravel())), shape=(n_bags, n_labels))


def fit_network(
    network: BagNetwork,
    samples: BagSamples,
    settings: Settings,
    validation_fraction: float,
    verbose: Verbose,
) -> list[float]:
    """Train in place; return the score on the validation split after each epoch."""
    drawn = validation_split(
        samples.groups,
        samples.counts,
        settings.seed,
        fraction=validation_fraction,
        fewest=_FEWEST_BAGS,
    )
    validation = None
    if drawn is not None:
        validation = BagValidation(samples.choose(np.flatnonzero(drawn)), settings.batch_size)
        samples = samples.choose(np.flatnonzero(~drawn))
    moved: Any = network.to(samples.device)
    run = Run(moved, make_optimizers(moved, "adamw", settings.learning_rate, 0.0))
    total = settings.epochs * samples.n_batches(settings.batch_size)
    with progress_bar("Training", total, verbose=verbose) as bar:
        train(run, samples, validation, settings, Keeper(None, 0), bar)
    return run.counters.scores


def _covariance(one: csr_matrix, other: csr_matrix) -> float:
    """Return the sum, over labels, of the covariances of counts, times the number of bags."""
    means = one.sum(axis=0, dtype=np.float64), other.sum(axis=0, dtype=np.float64) / one.shape[0]
    together = one.astype(np.float64).multiply(other).sum()
    return float(together - np.multiply(*means).sum())
