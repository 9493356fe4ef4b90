"""Random groups, each at most once, none of those that are there already."""

import torch
from torch import Tensor


def distinct_others(taken: Tensor, n: int, size: int) -> Tensor:
    """Return `size` distinct numbers below n for each row of `taken` `(rows, m)`, none in it.

    Numbers in a row of `taken` must be distinct. All choices are equally likely (Floyd's
    method: the i-th draw, if it is there already, is replaced by the largest that it could be).

    >>> distinct_others(torch.tensor([[1, 3]]), 5, 3).sort().values
    tensor([[0, 2, 4]])
    """
    n_free = n - taken.shape[1]
    chosen = torch.full((len(taken), size), -1, device=taken.device)
    for i in range(size):
        last = n_free - size + i
        draw = torch.randint(last + 1, (len(taken),), device=taken.device)
        repeated = (chosen == draw[:, None]).any(1)
        chosen[:, i] = draw.where(~repeated, last)
    return _past(chosen, taken.sort(dim=1).values)


def _past(free: Tensor, taken: Tensor) -> Tensor:
    """The numbers with these ranks among those that are not taken."""
    n_free_before = taken - torch.arange(taken.shape[1], device=taken.device)
    return free + torch.searchsorted(n_free_before, free, right=True)
