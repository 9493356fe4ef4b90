"""Rows for batches of tasks, from blocks that stay where they are.

Each block has a home node. A task there cuts out the rows that batches elsewhere need, for one
batch of each core at a time, so that nodes exchange rows and not blocks. A batch that needs most
of a block gets the block.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from umpteen.cluster.blocks import Blocks, Delivery, cut
from umpteen.cluster.nodes import Nodes
from umpteen.sharding import IntArray, OnRows, Sharded, rows_of

Batch = list[OnRows]
_COPIES = 2  # what a worker needs, in sizes of its rows (benchmarks/cluster_memory.py)
_ON_THEIR_WAY = 5  # batches per core: two that run or wait, here and where they were cut, and one


class Order(NamedTuple):
    """A batch, how its rows come, the objects that they come in, and the memory that it needs.

    Only a batch whose rows are not in the store has to ask for memory.
    """

    batch: Batch
    delivery: Delivery
    objects: list[Any]
    memory: int


class _Wanted(NamedTuple):
    """The rows that a batch needs, those of each block counted from its first."""

    rows: IntArray
    by_block: list[IntArray]
    size: int
    fits: bool  # into the store, all at once


class InFiles:
    """The memory for batches whose rows are in files, from which tasks copy them."""

    def __init__(self, sharded: Sharded, nodes: Nodes, limit: float) -> None:
        self._blocks, self._nodes, self._limit = Blocks(sharded, 1), nodes, limit

    def memory(self, batch: Batch) -> int:
        """Return the bytes that a batch needs; 0 if these are few."""
        size = self._blocks.n_bytes(rows_of(batch))
        if size <= self._limit:
            return 0
        self._nodes.check_task(_COPIES * size)
        return _COPIES * size


class Deliveries:
    """Orders of batches; `references` has those of each block's matrices in the store.

    Rows of a batch that take more than `limit` bytes are not in a node's store at once. `n_bytes`
    counts what is delivered, and `held` is the most that a node holds of blocks and slices.
    """

    def __init__(
        self, ray: Any, blocks: Blocks, references: list[list[Any]], nodes: Nodes,
        limit: float, max_retries: int,
    ) -> None:  # fmt: skip
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._cut = ray.remote(num_cpus=1, max_retries=max_retries)(cut)
        self._blocks, self._references, self._limit = blocks, references, limit
        self._nodes, homes = nodes, nodes.ids
        self._homes = [
            NodeAffinitySchedulingStrategy(homes[number % len(homes)], soft=True)
            for number in range(len(references))
        ]
        self.n_bytes = self._most = 0

    @property
    def held(self) -> int:
        """The blocks of a node, and slices that are on their way to and from it."""
        of_blocks = self._blocks.size // len(self._nodes.ids)
        return of_blocks + _ON_THEIR_WAY * self._nodes.most_cores * self._most

    def orders(self, batches: list[Batch], at_once: int) -> Iterator[Order]:
        """Yield the order of each batch; slices are cut for so many batches at once."""
        for start in range(0, len(batches), at_once):
            some = batches[start : start + at_once]
            wanted = list(map(self._wanted, some))
            for batch, own, slices in zip(some, wanted, self._slices(wanted), strict=True):
                yield self._order(batch, own, slices)

    def _wanted(self, batch: Batch) -> _Wanted:
        rows = rows_of(batch)
        size = self._blocks.n_bytes(rows)
        self.n_bytes += size
        if size <= self._limit:
            self._most = max(self._most, size)
        return _Wanted(rows, self._blocks.split(rows), size, size <= self._limit)

    def _slices(self, wanted: list[_Wanted]) -> list[dict[int, Any]]:
        """Start to cut, and return the slices of each batch by their blocks."""
        slices: list[dict[int, Any]] = [{} for _ in wanted]
        for number, block in enumerate(self._references):
            cuts = [i for i, each in enumerate(wanted) if self._is_cut(each, number)]
            if cuts:
                task = self._cut.options(
                    num_returns=len(cuts), scheduling_strategy=self._homes[number]
                )
                found = task.remote([wanted[i].by_block[number] for i in cuts], *block)
                for i, reference in zip(cuts, found if len(cuts) > 1 else [found], strict=True):
                    slices[i][number] = reference
        return slices

    def _is_cut(self, wanted: _Wanted, number: int) -> bool:
        n_rows = len(wanted.by_block[number])
        return wanted.fits and n_rows > 0 and not self._blocks.is_most(number, n_rows)

    def _order(self, batch: Batch, wanted: _Wanted, slices: dict[int, Any]) -> Order:
        taken: list[IntArray | None] = []
        objects: list[Any] = []
        for number, rows in enumerate(wanted.by_block):
            if number in slices:
                taken.append(None)
                objects.append(slices[number])
            elif len(rows) or len(wanted.rows) == number == 0:  # one piece, even of no rows
                taken.append(rows)
                objects += self._references[number]
        n_values = self._blocks.n_values(wanted.rows)
        if wanted.fits:
            return Order(batch, Delivery(taken, n_values, []), objects, 0)
        memory = _COPIES * wanted.size
        self._nodes.check_task(memory)
        return Order(batch, Delivery(taken, n_values, objects), [], memory)
