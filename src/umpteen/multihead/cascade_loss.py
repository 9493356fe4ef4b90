"""How a cascade learns: each head from the true group among its candidates."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits as binary_cross_entropy

from umpteen.neural.losses import cross_entropy, precise

if TYPE_CHECKING:
    from umpteen.multihead.cascade import CascadeHead
    from umpteen.multihead.cascade_level import CascadeLevel


def path_losses(
    head: "CascadeHead", features: Tensor, nodes: list[Tensor], smoothing: float
) -> Tensor:
    """Return the cross-entropy of the class's group, plus, in each true group, that of the next.

    `nodes` are `(n,)` per head, and so is the loss.
    """
    losses = cross_entropy(head.groups(features), nodes[0], smoothing)
    rows = torch.arange(len(features), device=features.device)
    for level, parents, own in zip(head.steps, nodes, nodes[1:], strict=False):
        logits, exists = level(features, rows, parents)
        losses = losses + cross_entropy(logits, own - parents * level.length, smoothing, exists)
    return losses


def sigmoid_losses(
    head: "CascadeHead", features: Tensor, rows: Tensor, nodes: list[Tensor]
) -> Tensor:
    """Return the binary cross-entropy over candidates, `(n,)`: the heads' means are added up.

    `rows` and, per head, `nodes` are `(pairs,)`: the samples' true labels. A sample's share in the
    mean over all candidates of a batch is as large as its number of candidates.
    """
    logits = precise(head.groups(features))
    truth = torch.zeros_like(logits)
    truth[rows, nodes[0]] = 1
    losses = binary_cross_entropy(logits, truth, reduction="none").mean(1)
    columns = torch.arange(logits.shape[1], device=rows.device).expand_as(logits)
    here = Candidates(columns, logits.detach().sigmoid(), truth)
    for depth, (parents, own) in enumerate(pairwise(nodes)):
        level = head.steps[depth]
        here = here.best(head.n_candidates)
        pair_rows, slots = here.existing()
        logits, exists = level(features, pair_rows, here.nodes[pair_rows, slots])
        logits = precise(logits)
        positions = here.find(rows, parents, pair_rows, slots)
        truth = torch.zeros_like(logits)
        truth[positions, own - parents * level.length] = 1
        entries = binary_cross_entropy(logits, truth, reduction="none").masked_fill(~exists, 0)
        of_pairs = entries.sum(1) * (len(features) / exists.sum())
        losses = losses.index_add(0, pair_rows, of_pairs)
        if depth + 1 < len(head.steps):
            here = here.children(level, logits.detach().sigmoid(), truth)
    return losses


@dataclass
class Candidates:
    """Groups of each sample that a head looks into; -1 where a sample has fewer."""

    nodes: Tensor  # (n, m)
    scores: Tensor  # (n, m), from 0 to 1
    truth: Tensor  # (n, m), 1 for true groups

    def best(self, n_candidates: int) -> "Candidates":
        """Return the `n_candidates` best, true ones first, and all of these where there are more.

        The paper adds 1 to raw outputs, its code to their sigmoid, which may be rounded to 1:
        with 2, no other group can come before a true one.
        """
        ranks = (self.scores + 2 * self.truth).masked_fill(self.nodes < 0, -1)
        wanted = self.truth.sum(1).clamp(min=n_candidates)
        width = min(int(wanted.max()), ranks.shape[1])
        columns = ranks.topk(width, dim=1).indices
        kept = [values.gather(1, columns) for values in (self.nodes, self.scores, self.truth)]
        surplus = torch.arange(width, device=columns.device) >= wanted[:, None]
        return Candidates(kept[0].masked_fill(surplus, -1), *kept[1:])

    def existing(self) -> tuple[Tensor, Tensor]:
        """Return the sample and the column of every candidate."""
        rows, slots = (self.nodes >= 0).nonzero(as_tuple=True)
        return rows, slots

    def find(self, rows: Tensor, nodes: Tensor, pair_rows: Tensor, slots: Tensor) -> Tensor:
        """Return which of the existing candidates are given nodes of given samples."""
        n_nodes = int(self.nodes.max()) + 1
        keys, order = (pair_rows * n_nodes + self.nodes[pair_rows, slots]).sort()
        return order[torch.searchsorted(keys, rows * n_nodes + nodes)]

    def children(self, level: "CascadeLevel", scores: Tensor, truth: Tensor) -> "Candidates":
        """Return all children, `(n, m * length)`: a child's score is its parent's times its own."""
        rows, slots = self.existing()
        nodes, exists = level.below(self.nodes)
        below = torch.zeros_like(nodes, dtype=scores.dtype)
        below[rows, slots] = scores * self.scores[rows, slots][:, None]
        true = torch.zeros_like(below)
        true[rows, slots] = truth
        return Candidates(nodes.where(exists, -1).flatten(1), below.flatten(1), true.flatten(1))
