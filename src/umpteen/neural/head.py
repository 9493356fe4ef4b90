"""Head: the contract of every last layer, and the checks that all of them share."""

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from umpteen.errors import FeaturesError, LabelsError
from umpteen.neural.targets import Targets
from umpteen.validation import check_k


class Head(nn.Module, ABC):
    """The last layer of a network: `loss` to train it by, `topk` to answer.

    A head is made for `in_features` features and `n_labels` labels, numbered from 0. Nothing of
    size samples x labels may be kept: where a table of all labels is needed at all, `topk` goes
    through it by blocks.
    """

    in_features: int
    n_labels: int

    @abstractmethod
    def loss(self, features: Tensor, targets: Targets) -> Tensor:
        """Return the mean loss over the samples of a batch; `features` are `(n, in_features)`."""

    @abstractmethod
    def topk(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the `k` best labels and their scores, both of shape `(n, min(k, n_labels))`.

        As in `umpteen.TopK`: best first, ties to the lowest id; unused places hold label -1 with
        score -inf.
        """

    def n_best(self, k: int) -> int:
        """Return the number of columns that `topk` gives for this `k`: at most `n_labels`."""
        return min(check_k(k), self.n_labels)

    @property
    def n_parameters(self) -> int:
        """Return how many numbers training may change."""
        return sum(each.numel() for each in self.parameters() if each.requires_grad)


def softmax_or_bce(single_label: bool) -> str:
    """Return the name of the loss that suits one class per sample, or several labels."""
    return "softmax" if single_label else "bce"


def check_batch(head: Head, features: Tensor, targets: Targets | None = None) -> None:
    """Refuse features of another shape, targets of other samples, and labels that do not exist."""
    if features.dim() != 2 or features.shape[1] != head.in_features:
        raise FeaturesError(
            f"features have shape {tuple(features.shape)}; this head was made for "
            f"(n, {head.in_features}): give the encoder as many outputs"
        )
    if targets is None:
        return
    if len(targets) != len(features):
        raise LabelsError(
            f"features of {len(features):,} samples came with targets of {len(targets):,}: "
            "both are of the same batch"
        )
    check_range(targets.labels, head.n_labels)


def check_range(labels: Any, n_labels: int) -> None:
    """Refuse labels, an array or a tensor, that are not from 0 to `n_labels - 1`."""
    if 0 in labels.shape:
        return
    least, most = int(labels.min()), int(labels.max())
    if least < 0 or most >= n_labels:
        raise LabelsError(
            f"labels run from 0 to {n_labels - 1:,} here, but {least if least < 0 else most:,} "
            "was given: number them from 0, or make the head for more labels"
        )
