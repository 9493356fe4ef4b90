"""Training of the network: bags in mini-batches, judged on bags held out."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy import sparse
from scipy.sparse import csr_matrix
from torch import Tensor

from umpteen.aggregated.miml.losses import LOSSES, Target
from umpteen.aggregated.miml.mask import affinities, assignment_mask
from umpteen.aggregated.miml.network import as_tensor, instance_logits
from umpteen.errors import ParameterError
from umpteen.progress import Bar
from umpteen.validation import Features

Layers = list[tuple[Tensor, Tensor]]

_FEW_BAGS = 20  # below, none are held out


@dataclass(frozen=True)
class BagData:
    """Instances in rows of unit length, bags with at least one each, and what is known of bags."""

    X: Features  # (instances, features)
    groups: csr_matrix  # (bags, instances)
    counts: csr_matrix  # (bags, labels)
    embeddings: Features | None  # (labels, features); None is no mask

    def choose(self, bags: npt.NDArray[np.intp]) -> "BagData":
        """Some of the bags."""
        return BagData(self.X, self.groups[bags], self.counts[bags], self.embeddings)


def hold_out(
    data: BagData, fraction: float, random: np.random.RandomState
) -> tuple[BagData, BagData | None]:
    """Bags to train on, and bags to judge by; none of those if there are few."""
    n_bags = data.groups.shape[0]
    n_held_out = round(fraction * n_bags) if n_bags >= _FEW_BAGS else 0
    order = random.permutation(n_bags)
    rest = data.choose(np.sort(order[n_held_out:]))
    return rest, data.choose(np.sort(order[:n_held_out])) if n_held_out else None


@dataclass(frozen=True)
class Settings:
    """How to train; what `CoAttentionMIML` says of its parameters of the same names."""

    n_concepts: int
    temperature: float
    loss: str
    epochs: int
    batch_size: int
    learning_rate: float
    patience: int
    scale: float  # of the instances: their entries are near 1 then, as weights are drawn for
    device: torch.device


def train(
    data: BagData,
    held_out: BagData | None,
    layers: Layers,
    settings: Settings,
    random: np.random.RandomState,
    bar: Bar,
) -> list[float]:
    """Adjust `layers` in place; returns the score on held-out bags after each epoch.

    With held-out bags, the layers of the best epoch are kept, the later of two as good ones, and
    training ends after `patience` epochs without a better one.
    """
    tensors = [tensor.requires_grad_() for layer in layers for tensor in layer]
    optimizer = torch.optim.Adam(tensors, lr=settings.learning_rate)
    scores: list[float] = []
    best, best_epoch = [tensor.detach().clone() for tensor in tensors], -1
    for epoch in range(settings.epochs):
        loss = _one_epoch(data, layers, optimizer, settings, random)
        if not np.isfinite(loss):
            raise ParameterError(
                f"training diverged: the loss is {loss} after {epoch + 1} epochs with "
                f"learning_rate={settings.learning_rate:g}; use a lower one"
            )
        bar.advance(1, loss=loss)
        if held_out is None:
            continue
        scores.append(count_agreement(held_out, layers, settings))
        if scores[-1] >= max(scores):
            best, best_epoch = [tensor.detach().clone() for tensor in tensors], epoch
        elif epoch - best_epoch >= settings.patience:
            break
    with torch.no_grad():
        for tensor, kept in zip(tensors, best if held_out is not None else tensors, strict=True):
            tensor.requires_grad_(False).copy_(kept)
    return scores


def count_agreement(data: BagData, layers: Layers, settings: Settings) -> float:
    """How well the labels named for instances account for what tells bags apart, at most 1.

    Each instance names as many labels as instances have on average, at least one. How often a
    label was named in a bag and how often the bag's list holds it, both relative to the average
    bag: their correlation over all bags and labels. Needs no label of an instance, and unlike the
    overlap of both is not impressed by labels that are merely named about as often as they occur.
    """
    named = csr_matrix(sparse.vstack(list(_named(data, layers, settings))))
    n_bags = data.groups.shape[0]

    def covariance(one: csr_matrix, other: csr_matrix) -> float:
        means = one.sum(axis=0, dtype=np.float64), other.sum(axis=0, dtype=np.float64) / n_bags
        together = one.astype(np.float64).multiply(other).sum()
        return float(together - np.multiply(*means).sum())

    spread = covariance(named, named) * covariance(data.counts, data.counts)
    return covariance(named, data.counts) / float(np.sqrt(spread)) if spread > 0 else 0.0


def _named(data: BagData, layers: Layers, settings: Settings) -> Iterator[csr_matrix]:
    """How often each label is among the best of an instance, per bag; batch after batch."""
    per_instance = max(1, round(data.counts.sum() / data.groups.nnz))
    n_labels = data.counts.shape[1]
    for bags in _batches(data, settings.batch_size, None):
        members = data.groups[bags]
        with torch.no_grad():
            logits = _logits(data, members, layers, settings)
            best = logits.topk(min(per_instance, n_labels), dim=1).indices.cpu().numpy()
        of_bag = np.repeat(np.arange(len(bags)), np.diff(members.indptr) * best.shape[1])
        ones = np.ones(best.size, np.float32)
        yield csr_matrix((ones, (of_bag, best.ravel())), shape=(len(bags), n_labels))


def bag_loss(
    data: BagData, bags: npt.NDArray[np.intp], layers: Layers, settings: Settings
) -> Tensor:
    """Mean loss of some bags."""
    members = data.groups[bags]
    sizes = np.diff(members.indptr).astype(np.int64)
    mask = None
    if data.embeddings is not None and settings.temperature and sizes.max() > 1:
        found = affinities(data.X[members.indices], data.embeddings)
        mask = torch.from_numpy(assignment_mask(found, sizes, settings.temperature))
        mask = mask.to(settings.device)
    logits = _logits(data, members, layers, settings)
    target = Target.of(data.counts[bags], settings.device)
    return LOSSES[settings.loss](logits, mask, torch.from_numpy(sizes).to(logits.device), target)


def _logits(data: BagData, members: csr_matrix, layers: Layers, settings: Settings) -> Tensor:
    x = as_tensor(data.X[members.indices] * np.float32(settings.scale), settings.device)
    return instance_logits(x, layers, settings.n_concepts)


def _one_epoch(
    data: BagData,
    layers: Layers,
    optimizer: torch.optim.Optimizer,
    settings: Settings,
    random: np.random.RandomState,
) -> float:
    total = 0.0
    for bags in _batches(data, settings.batch_size, random):
        loss = bag_loss(data, bags, layers, settings)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(bags)
    return total / data.groups.shape[0]


def _batches(
    data: BagData, size: int, random: np.random.RandomState | None
) -> Iterator[npt.NDArray[np.intp]]:
    n_bags = data.groups.shape[0]
    order = np.arange(n_bags) if random is None else random.permutation(n_bags)
    for start in range(0, n_bags, size):
        yield order[start : start + size]
