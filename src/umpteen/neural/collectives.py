"""What ranks send to each other, as functions that have gradients.

All ranks compute the same loss, each from its own columns of the logits. So the gradient of a sum
over ranks is the same on all of them, and needs no message; the features of a sample, which all
ranks use, collect the gradients of all ranks.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd import Function

Gradients = tuple[Tensor | None, ...]


class Gathered(Function):
    """The rows of all ranks, one after the other.

    Gradients of a rank's rows are multiplied by the number of ranks, since those of an encoder are
    then averaged over the ranks, as `DistributedDataParallel` does.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, rank: int, sizes: tuple[int, ...]) -> Tensor:
        ctx.rank, ctx.sizes = rank, sizes
        return concatenated(rows, sizes)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        total = gradients[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total.split(ctx.sizes)[ctx.rank] * len(ctx.sizes), None, None


class Total(Function):
    """The sum over the ranks."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = values.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]


class Own(Function):
    """A rank's part of what all have; the loss is then the mean of what the ranks make of it."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, rank: int, sizes: tuple[int, ...]) -> Tensor:
        ctx.sizes = sizes
        part: Tensor = values.split(sizes)[rank].clone()
        return part

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Gradients:
        return concatenated(gradients[0], ctx.sizes) / len(ctx.sizes), None, None


def concatenated(rows: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Return the rows of all ranks; they are padded, as all ranks must send as many."""
    padded = rows.new_zeros(max(sizes), *rows.shape[1:])
    padded[: len(rows)] = rows
    found = [torch.empty_like(padded) for _ in sizes]
    dist.all_gather(found, padded)
    return torch.cat([each[:size] for each, size in zip(found, sizes, strict=True)])


def message_device() -> torch.device:
    """Return where small messages must be: NCCL sends from graphics cards only."""
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
