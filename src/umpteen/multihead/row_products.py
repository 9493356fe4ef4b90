"""Products of queries with many table rows, without keeping copies of the rows."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

_CHUNK_ENTRIES = 2**19  # copied at a time: they stay in the processor's cache
_GATHERED = 32  # as slow as so many products of a matrix product, for each product of a copied row


def row_products(
    queries: Tensor, table: Tensor, samples: Tensor, nodes: Tensor, *, sparse: bool
) -> Tensor:
    """Return `table[nodes[p, i]] . queries[samples[p]]` for all p, i: `(pairs, m)` like `nodes`.

    `queries` are `(n, hidden)`, `table` `(rows, hidden)`, `samples` `(pairs,)`. On a CPU, moving
    copies of rows through memory costs more than to multiply them; so they are made in small
    chunks, and made again for the gradient, which is sparse for the table if asked for. Where
    most of a small table is asked for anyway, all its products are made and some are taken.
    """
    if not sparse and len(queries) * len(table) <= _GATHERED * nodes.numel():
        return (queries @ table.T)[samples[:, None], nodes]
    if table.device.type == "cpu" and not torch.compiler.is_compiling():
        with torch.autocast("cpu", enabled=False):  # rows are copied, not cast
            products: Tensor = _InChunks.apply(queries.to(table), table, samples, nodes, sparse)
        return products
    rows = functional.embedding(nodes, table, sparse=sparse)
    return torch.bmm(rows, queries[samples][:, :, None])[:, :, 0]


class _InChunks(Function):
    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, table: Tensor, samples: Tensor, nodes: Tensor, sparse: bool
    ) -> Tensor:
        ctx.save_for_backward(queries, table, samples, nodes)
        ctx.sparse = sparse
        products = queries.new_empty(nodes.shape)
        for some, rows, out in _chunks(queries.shape[1], samples, nodes, products):
            torch.bmm(_copied(table, rows), queries[some][:, :, None], out=out[:, :, None])
        return products

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast("cpu", enabled=False):  # a backward pass may be in its block as well
            return _InChunks._gradients(ctx, gradients)

    @staticmethod
    def _gradients(ctx: Any, gradients: tuple[Tensor, ...]) -> tuple[Tensor | None, ...]:
        queries, table, samples, nodes = ctx.saved_tensors
        of_queries = torch.zeros_like(queries)
        of_rows = queries.new_empty(*nodes.shape, queries.shape[1])
        chunks = _chunks(queries.shape[1], samples, nodes, gradients[0], of_rows)
        for some, rows, gradient, out in chunks:
            products = torch.bmm(gradient[:, None], _copied(table, rows))
            of_queries.index_add_(0, some, products[:, 0])
            torch.mul(gradient[:, :, None], queries[some][:, None], out=out)
        flat, values = nodes.flatten(), of_rows.flatten(0, 1)
        if ctx.sparse:
            of_table = torch.sparse_coo_tensor(
                flat[None], values, table.shape, check_invariants=False
            )
        else:
            of_table = torch.zeros_like(table).index_add_(0, flat, values)
        return of_queries, of_table, None, None, None


def _copied(table: Tensor, rows: Tensor) -> Tensor:
    """Return `table[rows]`; an embedding copies whole rows, an index value by value."""
    return functional.embedding(rows, table)


def _chunks(hidden: int, *tensors: Tensor) -> Any:
    """All of the tensors, some pairs at a time; the second has the rows of each pair."""
    n_pairs = max(1, _CHUNK_ENTRIES // max(1, tensors[1].shape[1] * hidden))
    return zip(*(tensor.split(n_pairs) for tensor in tensors), strict=True)
