"""Ranks: the processes that train one network together, on `torch.distributed`.

Every rank calls the same methods in the same order; each of them waits for the others.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from umpteen.errors import RanksError, UmpteenError
from umpteen.neural.collectives import Gathered, Own, Total, message_device
from umpteen.neural.device import generator_states, set_generator_states

Answer = TypeVar("Answer")
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Ranks:
    """This process and the others; a process alone is rank 0 of a world of 1."""

    rank: int = 0
    world: int = 1

    @classmethod
    def here(cls) -> "Ranks":
        """Return those of the process group that was initialised, if there is one."""
        if dist.is_available() and dist.is_initialized():
            return cls(dist.get_rank(), dist.get_world_size())
        return cls()

    @property
    def are_many(self) -> bool:
        """Return whether there is more than one process."""
        return self.world > 1

    # Which samples and which labels are here

    def share(self, rows: Any) -> Any:
        """Return the rows of this rank: neighbours, so that those of all ranks are in order.

        >>> Ranks(1, 2).share([3, 1, 4, 1, 5])
        [1, 5]
        """
        larger, size = len(rows) % self.world, len(rows) // self.world
        first = self.rank * size + min(self.rank, larger)
        return rows[first : first + size + (self.rank < larger)]

    @property
    def labels(self) -> slice:
        """Return the labels whose rows are here: every `world`-th.

        Ids often follow frequencies or topics: neighbours on one rank would be more work for it.
        """
        return slice(self.rank, None, self.world)

    def n_held(self, n_labels: int) -> int:
        """Return how many of the labels are here."""
        return len(range(n_labels)[self.labels])

    def holds(self, labels: Tensor) -> Tensor:
        """Return which labels are here; `labels // world` are their rows."""
        return labels % self.world == self.rank

    # Numbers that all ranks have

    def sum(self, number: float) -> float:
        """Return the sum over the ranks."""
        if not self.are_many:
            return number
        total = torch.tensor(number, dtype=torch.float64, device=message_device())
        dist.all_reduce(total)
        return float(total)

    def first(self, number: Number) -> Number:
        """Return the number that rank 0 has."""
        if not self.are_many:
            return number
        kind = torch.int64 if isinstance(number, int) else torch.float64
        told = torch.tensor(number, dtype=kind, device=message_device())
        dist.broadcast(told, src=0)
        return type(number)(told.item())

    def check_same(self, facts: dict[str, Any], advice: str) -> None:
        """Refuse facts, by name, that are others on another rank: all ranks raise the error."""
        if not self.are_many:
            return
        found: list[Any] = [None] * self.world
        dist.all_gather_object(found, facts)
        for rank, theirs in enumerate(found):
            for name, value in found[0].items():
                if theirs.get(name) != value:
                    raise RanksError(
                        f"{name} is {value} on rank 0, but {theirs.get(name)} on rank {rank}: "
                        f"{advice}"
                    )

    def together(self, check: Callable[[], tuple[Answer, Sequence[int]]]) -> Any:
        """Return the answer of `check`, and the numbers that it gave on each rank, `(world, m)`.

        They are four at most. If it raises an error on one rank, all ranks raise one, so that none
        waits for ever.
        """
        problem, answer, numbers = None, None, [0, 0, 0, 0]
        try:
            answer, given = check()
            numbers[: len(given)] = given
        except UmpteenError as error:
            problem = error
        mine = torch.tensor([problem is not None, *numbers], device=message_device())
        found = [torch.empty_like(mine) for _ in range(self.world)]
        dist.all_gather(found, mine)
        if problem is not None:
            raise problem
        table = torch.stack(found).tolist()
        failed = [rank for rank, (has_failed, *_) in enumerate(table) if has_failed]
        if failed:
            raise RanksError(f"rank {failed[0]} raised an error: its own message says why")
        return answer, [row[1:] for row in table]

    # Tensors

    def copy_first(self, tensors: Iterable[Tensor]) -> None:
        """Give tensors the values that they have on rank 0."""
        if self.are_many:
            for tensor in tensors:
                dist.broadcast(tensor.detach(), src=0)

    def gather(self, rows: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return the rows of all ranks, which have these many, one after the other."""
        gathered: Tensor = Gathered.apply(rows, self.rank, tuple(sizes))
        return gathered

    def total(self, values: Tensor) -> Tensor:
        """Return the sum over the ranks, of which all compute the same loss."""
        summed: Tensor = Total.apply(values)
        return summed

    def logsumexp(self, logits: Tensor) -> Tensor:
        """Return the logarithm of the sum of exponentials over the columns of all ranks, `(n,)`."""
        here = logits.logsumexp(1)  # -inf if no column is here
        highest = here.detach().clone()
        dist.all_reduce(highest, dist.ReduceOp.MAX)
        return highest + self.total((here - highest).exp()).log()

    def own(self, values: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return this rank's part of what all ranks have computed; the loss is the ranks' mean."""
        owned: Tensor = Own.apply(values, self.rank, tuple(sizes))
        return owned

    def scores(self, labels: Tensor, score: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Return the scores of labels of each sample, `(n, m)`.

        `score(samples, rows)` returns those of the rows that are here, `(pairs, 1)` like `rows`.
        """
        here = self.holds(labels)
        found = score(here.nonzero()[:, 0], labels[here][:, None] // self.world)
        return self.total(found.new_zeros(labels.shape).masked_scatter(here, found[:, 0]))

    # A training

    def begin(self, encoder: nn.Module, seed: int) -> None:
        """Take the encoder of rank 0, and draw random numbers of one's own for dropout."""
        self.copy_first(encoder.state_dict().values())
        if self.rank:
            torch.manual_seed(int(np.random.default_rng([seed, self.rank]).integers(2**63)))

    @contextmanager
    def same_draws(self, device: torch.device) -> Iterator[None]:
        """Draw the numbers of rank 0 in the block; after it, each rank goes on with its own."""
        mine = generator_states(device)
        states = {name: torch.tensor(each, device=message_device()) for name, each in mine.items()}
        self.copy_first(states.values())
        set_generator_states({name: each.cpu().numpy() for name, each in states.items()}, device)
        try:
            yield
        finally:
            if self.rank:
                set_generator_states(mine, device)
