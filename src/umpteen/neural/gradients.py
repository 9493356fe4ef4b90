"""Gradients of what all ranks have, averaged over them.

A reduction after the backward pass takes the place of `DistributedDataParallel`: the network keeps
its names and its hooks, tables keep sparse gradients on any backend, and next to the rows of a head
an encoder is small, so there is little to overlap.
"""

from collections.abc import Iterable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from umpteen.neural.ranks import Ranks


@torch.no_grad()
def average_gradients(parameters: Iterable[nn.Parameter], ranks: Ranks) -> None:
    """Average the gradients over the ranks; sparse ones stay sparse."""
    if not ranks.are_many:
        return
    learned: list[Any] = [each for each in parameters if each.grad is not None]
    dense = [each.grad for each in learned if not each.grad.is_sparse]
    if dense:
        flat = torch.cat([gradient.flatten() for gradient in dense])
        dist.all_reduce(flat)
        means = (flat / ranks.world).split([gradient.numel() for gradient in dense])
        for gradient, mean in zip(dense, means, strict=True):
            gradient.copy_(mean.view_as(gradient))
    for parameter in learned:
        if parameter.grad.is_sparse:
            parameter.grad = _mean_of_sparse(parameter.grad.coalesce(), ranks)


def _mean_of_sparse(gradient: Tensor, ranks: Ranks) -> Tensor:
    rows, values = gradient.indices()[0], gradient.values()
    _, table = ranks.together(lambda: (None, [len(rows)]))
    sizes = [n_rows for n_rows, *_ in table]
    indices, values = ranks.gather(rows, sizes), ranks.gather(values, sizes) / ranks.world
    return torch.sparse_coo_tensor(
        indices[None], values, gradient.shape, check_invariants=False
    ).coalesce()
