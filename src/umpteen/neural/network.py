"""Network: an encoder and a head."""

from typing import Any

from torch import Tensor, nn

from umpteen.neural.head import Head
from umpteen.neural.targets import Targets


class Network(nn.Module):
    """An encoder and a head, trained as one: the head gets the encoder's features."""

    def __init__(self, encoder: nn.Module, head: Head) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def loss(self, batch: Any, targets: Targets) -> Tensor:
        """Return the mean loss over a batch."""
        loss: Tensor = self.head(self.encoder(batch), targets)
        return loss

    def topk(self, batch: Any, k: int) -> tuple[Tensor, Tensor]:
        """Return the best labels of each sample of a batch, and their scores."""
        return self.head.topk(self.encoder(batch), k)

    def topk_log_proba(self, batch: Any, k: int) -> tuple[Tensor, Tensor]:
        """Return the best labels of each sample of a batch, and their log-probabilities."""
        return self.head.topk_log_proba(self.encoder(batch), k)
