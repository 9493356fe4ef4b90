"""What every last layer is: features in, the best labels out."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

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
        """The mean loss over the samples of a batch; `features` are `(n, in_features)`."""

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
        """Numbers that training may change."""
        return sum(each.numel() for each in self.parameters() if each.requires_grad)
