"""One head of a cascade after the first."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from umpteen.multihead.row_products import row_products


class CascadeLevel(nn.Module):
    """Compares a query with the table rows of the children of some groups.

    The children of group g are the nodes from `g * length` on; the last group may have fewer.
    """

    def __init__(
        self, in_features: int, hidden: int, length: int, n_nodes: int, *, bias: bool, sparse: bool
    ) -> None:
        super().__init__()
        self.hidden, self.length, self.n_nodes = hidden, length, n_nodes
        self.query = nn.Linear(in_features, hidden)
        self.table = nn.Embedding(n_nodes, hidden, sparse=sparse)
        nn.init.xavier_uniform_(self.table.weight)
        self.bias = nn.Embedding(n_nodes, 1, sparse=sparse) if bias else None
        if self.bias is not None:
            nn.init.zeros_(self.bias.weight)

    def below(self, groups: Tensor) -> tuple[Tensor, Tensor]:
        """Return the nodes below each group along a new last axis, and which of them exist."""
        nodes = groups[..., None] * self.length + torch.arange(self.length, device=groups.device)
        exists = (nodes < self.n_nodes) & (groups[..., None] >= 0)
        return nodes, exists

    def forward(self, features: Tensor, rows: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits `(pairs, length)` of the children of a group for a sample, and which exist.

        `rows` and `groups` are `(pairs,)`.
        """
        nodes, exists = self.below(groups)
        nodes = nodes.clamp(0, self.n_nodes - 1)
        logits = row_products(
            self.query(features), self.table.weight, rows, nodes, sparse=self.table.sparse
        )
        if self.bias is not None:
            logits = logits + self.bias(nodes)[..., 0]
        return logits, exists

    def continued(
        self,
        features: Tensor,
        groups: Tensor,
        scores: Tensor,
        log_scores: Callable[[Tensor], Tensor],
    ) -> tuple[Tensor, Tensor]:
        """Return all children of groups `(n, m)`, and their scores added to the groups'.

        Both are `(n, m * length)`. Children that do not exist score -inf; nor do those of group -1.
        """
        rows = torch.arange(len(features), device=features.device).repeat_interleave(
            groups.shape[1]
        )
        logits, exists = self(features, rows, groups.flatten())
        logits = logits.masked_fill(~exists, -torch.inf)
        own = log_scores(logits).masked_fill(~exists, -torch.inf).view(*groups.shape, self.length)
        nodes = self.below(groups)[0]
        return nodes.flatten(1), (scores[:, :, None] + own).flatten(1)
