"""Losses of dense logits `(n, n_labels)`, one for each sample: `(n,)`, in float32 or better."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import log_softmax, softplus

from umpteen.errors import LabelsShapeError, ParameterError
from umpteen.neural.targets import Targets
from umpteen.validation import check_number


def precise(logits: Tensor) -> Tensor:
    """Return logits in float32 where they are in half precision: sums of many need it."""
    return logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits


def cross_entropy(
    logits: Tensor, classes: Tensor, smoothing: float = 0.0, exists: Tensor | None = None
) -> Tensor:
    """Return the cross-entropy of one class of each sample, `(n,)`, among those that `exists`."""
    logits = precise(logits)
    if exists is None:
        return functional.cross_entropy(
            logits, classes, reduction="none", label_smoothing=smoothing
        )
    logits = logits.masked_fill(~exists, -torch.inf)
    losses = functional.cross_entropy(logits, classes, reduction="none")
    if smoothing:
        log_probabilities = log_softmax(logits, dim=1).masked_fill(~exists, 0)
        spread = -log_probabilities.sum(1) / exists.sum(-1)
        losses = (1 - smoothing) * losses + smoothing * spread
    return losses


def softmax(logits: Tensor, targets: Targets, smoothing: float = 0.0) -> Tensor:
    """Return the cross-entropy of the one class of each sample."""
    return cross_entropy(logits, targets.classes, smoothing)


def bce(logits: Tensor, targets: Targets, _: float = 0.0) -> Tensor:
    """Return the binary cross-entropy, summed over the labels: each is a question of its own."""
    logits, rows = precise(logits), targets.rows
    return softplus(logits).sum(1).index_add(0, rows, -logits[rows, targets.labels])


def pick_all_labels(
    base: str = "cross_entropy",
    normalize: bool = False,
    *,
    smoothing: float = 0.1,
    gamma: float = 2.0,
) -> "PickAllLabels":
    """Return the loss of logits `(n, n_labels)` and `Targets`, averaged over samples.

    The loss of a sample is the sum of the losses of its labels, each treated as its only class (Li
    et al. 2024). With `normalize`, it is their mean, so that samples with many labels do not count
    more than others. A sample without labels has the loss 0.

    | base | loss of logits z for class k |
    |---|---|
    | `cross_entropy` | -log p_k, p = softmax(z) |
    | `mse` | squared distance of z from the one-hot vector of k |
    | `label_smoothing` | cross-entropy with `smoothing` of the target spread over all labels |
    | `focal` | -(1 - p_k)^`gamma` log p_k |

    The cross-entropy of a sample with m labels is at least m log m (log m with `normalize`).

    >>> loss = pick_all_labels()
    >>> targets = Targets(torch.tensor([0, 2]), torch.tensor([0, 1]))
    >>> round(float(loss(torch.tensor([[50.0, 50.0, 0.0]]), targets)), 4)
    1.3863
    """
    return PickAllLabels(base, normalize, smoothing, gamma)


@dataclass(frozen=True)
class PickAllLabels:
    """A pick-all-labels loss; `pick_all_labels` says what the settings mean."""

    base: str
    normalize: bool
    smoothing: float
    gamma: float

    def __post_init__(self) -> None:
        if self.base not in _BASES:
            raise ParameterError(f"base={self.base!r} is not possible: choose one of {[*_BASES]}")
        if not 0 <= self.smoothing < 1:
            raise ParameterError(
                f"smoothing={self.smoothing!r} is not possible: expected 0 or more, less than 1"
            )
        check_number(self.gamma, "gamma")

    def __call__(self, logits: Tensor, targets: Targets) -> Tensor:
        return self.per_sample(logits, targets).mean()

    def per_sample(self, logits: Tensor, targets: Targets) -> Tensor:
        """Return the loss of each sample, `(n,)`."""
        if len(logits) != len(targets):
            raise LabelsShapeError(
                f"logits have {len(logits):,} rows but targets {len(targets):,} samples"
            )
        logits, rows = precise(logits), targets.rows
        pairs = _BASES[self.base](self, logits, rows, targets.labels)  # (pairs,)
        if self.normalize:
            pairs = pairs / targets.counts[rows]
        return logits.new_zeros(len(logits)).index_add(0, rows, pairs)


def _cross_entropy(_: PickAllLabels, logits: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
    return logits.logsumexp(dim=1)[rows] - logits[rows, labels]


def _mse(_: PickAllLabels, logits: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
    return logits.square().sum(dim=1)[rows] - 2 * logits[rows, labels] + 1


def _label_smoothing(loss: PickAllLabels, logits: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
    log_probabilities = log_softmax(logits, dim=1)
    of_label = -log_probabilities[rows, labels]
    of_all = -log_probabilities.mean(dim=1)[rows]
    return (1 - loss.smoothing) * of_label + loss.smoothing * of_all


def _focal(loss: PickAllLabels, logits: Tensor, rows: Tensor, labels: Tensor) -> Tensor:
    log_probabilities = -_cross_entropy(loss, logits, rows, labels)
    others = -torch.expm1(log_probabilities)  # 1 - p, without cancellation
    return -(others.clamp_min(torch.finfo(others.dtype).tiny) ** loss.gamma) * log_probabilities


_BASES: dict[str, Callable[[PickAllLabels, Tensor, Tensor, Tensor], Tensor]] = {
    "cross_entropy": _cross_entropy,
    "mse": _mse,
    "label_smoothing": _label_smoothing,
    "focal": _focal,
}

LOSSES: dict[str, Callable[[Tensor, Targets, float], Tensor]] = {
    "softmax": softmax,
    "bce": bce,
    "pick_all_labels": lambda logits, targets, _: pick_all_labels().per_sample(logits, targets),
}
