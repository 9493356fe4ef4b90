"""Tables with a row for each label, cut into the rows of ranks and put together again."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from umpteen.neural.ranks import Ranks


def cut_tables(head: nn.Module, ranks: Ranks) -> None:
    """Leave a head the rank's own rows of the tables that rank 0 has."""
    _replace_all(head, lambda table: _rows_of_first(table, ranks))


def join_tables(head: nn.Module, n_labels: int, ranks: Ranks) -> None:
    """Give a head the rows of all ranks."""
    _replace_all(head, lambda rows: _whole(rows, n_labels, ranks))


def _rows_of_first(table: Tensor, ranks: Ranks) -> Tensor:
    if ranks.rank == 0:
        for rank in range(1, ranks.world):
            dist.send(table[Ranks(rank, ranks.world).labels].contiguous(), dst=rank)
        return table[ranks.labels].clone(memory_format=torch.contiguous_format)
    rows = table.new_empty(ranks.n_held(len(table)), *table.shape[1:])
    dist.recv(rows, src=0)
    return rows


def _whole(rows: Tensor, n_labels: int, ranks: Ranks) -> Tensor:
    table = rows.new_empty(n_labels, *rows.shape[1:])
    for rank in range(ranks.world):
        held = Ranks(rank, ranks.world)
        theirs = rows.new_empty(held.n_held(n_labels), *rows.shape[1:])
        if rank == ranks.rank:
            theirs = rows
        dist.broadcast(theirs, src=rank)
        table[held.labels] = theirs
    return table


def _replace_all(head: nn.Module, made: Callable[[Tensor], Tensor]) -> None:
    for module in head.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            rows = made(parameter.detach())
            setattr(module, name, nn.Parameter(rows, requires_grad=parameter.requires_grad))
            if isinstance(module, nn.Embedding):
                module.num_embeddings = len(rows)
