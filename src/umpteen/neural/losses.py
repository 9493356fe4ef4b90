"""Losses of dense logits `(n, n_labels)`: the mean over the samples of a batch."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, softplus

from umpteen.neural.targets import Targets


def softmax(logits: Tensor, targets: Targets) -> Tensor:
    """Cross-entropy of the one class of each sample."""
    return cross_entropy(logits, targets.classes)


def bce(logits: Tensor, targets: Targets) -> Tensor:
    """Binary cross-entropy, summed over the labels: each label is a question of its own."""
    relevant = logits[targets.rows, targets.labels]
    return (softplus(logits).sum() - relevant.sum()) / max(1, len(targets))


def pick_all_labels(logits: Tensor, targets: Targets) -> Tensor:
    """Cross-entropy of each label of a sample as if it were the only one, summed (Li et al. 2024).

    A sample without labels costs nothing.
    """
    relevant = logits[targets.rows, targets.labels]
    normalizer = torch.logsumexp(logits, dim=1)
    return ((targets.counts * normalizer).sum() - relevant.sum()) / max(1, len(targets))


LOSSES: dict[str, Callable[[Tensor, Targets], Tensor]] = {
    "softmax": softmax,
    "bce": bce,
    "pick_all_labels": pick_all_labels,
}
