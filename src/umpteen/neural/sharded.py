"""ShardedHead: a last layer whose labels are divided among processes."""

from copy import deepcopy
from typing import Any, Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from umpteen.errors import ParameterError
from umpteen.neural.head import Head
from umpteen.neural.ranks import Ranks
from umpteen.neural.settled import SettledHead
from umpteen.neural.tables import cut_tables, join_tables
from umpteen.neural.targets import Targets
from umpteen.neural.topk import best_labels, padded


@runtime_checkable
class Shardable(Protocol):
    """A head that can be sharded: all its parameters have a row for each label.

    `features` and `targets` are those of all ranks. The rows of labels are every `ranks.world`-th,
    from `ranks.rank` on; everything else is whole, and the same on all ranks.
    """

    def losses_of_share(
        self, features: Tensor, targets: Targets, smoothing: float, ranks: Ranks
    ) -> Tensor:
        """Return the loss of each sample, `(n,)`, the same on all ranks."""
        ...

    def best_of_share(self, features: Tensor, k: int, ranks: Ranks) -> tuple[Tensor, Tensor]:
        """Return the best rows of this rank and their scores, `(n, k)`; `k` is at most these."""
        ...


class ShardedHead(SettledHead):
    """A head of which each process holds the rows of some labels; `head.shard()` makes it.

    All ranks of `torch.distributed` call it together, each with its own share of a batch, and get
    the mean loss over all of them; with `reduction="none"`, the losses of the rank's own samples.
    `topk` returns the answers for the rank's own samples. Weights, gradients and the state of an
    optimizer take a part of the memory on each rank.

    Gradients of features are such that those of an encoder are right once they are averaged over
    the ranks, as `torch.nn.parallel.DistributedDataParallel` does. Gradients of the head's own
    rows are complete: do not wrap it. Random draws are those of rank 0.

    `state_dict` has the rank's rows. `unshard()` returns the plain head with all rows, which can
    be saved and used without `torch.distributed`.
    """

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.ranks = Ranks.here()
        self.in_features, self.n_labels = head.in_features, head.n_labels
        self.loss_name, self.has_noise = head.loss_name, head.has_noise
        self._check(head)
        self.ranks.copy_first(head.buffers())
        cut_tables(head, self.ranks)
        self.part: Any = head

    def settings(self) -> dict[str, Any]:
        return {"rank": self.ranks.rank, "world": self.ranks.world}

    def losses(self, features: Tensor, targets: Targets, smoothing: float = 0.0) -> Tensor:
        """Return the loss of each sample of all ranks; all of them have the same features here."""
        losses: Tensor = self.part.losses_of_share(features, targets, smoothing, self.ranks)
        return losses

    @torch.no_grad()
    def topk(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the `k` best labels of the rank's own samples, and their scores."""
        self.ranks.together(lambda: (self._rows(features), []))
        answer = super().topk
        found: tuple[Tensor, Tensor] = self.ranks.together(lambda: (answer(features, k), []))[0]
        return found

    def best_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        ranks = self.ranks
        sizes = [numbers[0] for numbers in ranks.together(lambda: (None, [len(features)]))[1]]
        rows = ranks.gather(features, sizes)
        k_here = min(k, ranks.n_held(self.n_labels))
        found, scores = self.part.best_of_share(rows, k_here, ranks)
        found, scores = padded(found, scores, k)
        labels = torch.where(found < 0, -1, found * ranks.world + ranks.rank)
        every = [len(rows)] * ranks.world
        own = slice(sum(sizes[: ranks.rank]), sum(sizes[: ranks.rank + 1]))
        labels, scores = (
            torch.cat([part[own] for part in ranks.gather(each, every).split(every)], dim=1)
            for each in (labels, scores)
        )
        return best_labels(scores, labels, k)

    def best_log_proba_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Raise an error: only a plain head has probabilities."""
        raise ParameterError("a sharded head has scores only: use head.unshard().topk_log_proba")

    def log_proba_of(self, features: Tensor, labels: Tensor) -> Tensor:
        """Raise an error: only a plain head has probabilities."""
        raise ParameterError("a sharded head has scores only: use head.unshard().log_proba")

    def init_bias(self, counts: Any, n_samples: int | None = None) -> Self:
        """Raise an error: biases are set before the head is sharded."""
        raise ParameterError(
            "this head is sharded already: call init_bias before, head.init_bias(counts).shard()"
        )

    def shard(self) -> "Head":
        """Return the head itself."""
        return self

    def unshard(self) -> Head:
        """Return the plain head with the rows of all ranks, a copy, on each rank."""
        whole: Head = deepcopy(self.part)
        join_tables(whole, self.n_labels, self.ranks)
        return whole.train(self.training)

    def fit_noise(self, features: Tensor, labels: Any, **options: Any) -> Self:
        """Fit the noise of `AdversarialHead` to the samples of all ranks; return the head itself.

        Rank 0 fits it, and the others get a copy.
        """
        if not self.has_noise:
            raise ParameterError(f"a {type(self.part).__name__} draws no negatives by features")
        rows, targets, _ = self._batch(features, labels)
        fit = self.part.fit_noise if self.ranks.rank == 0 else lambda *_, **__: None
        self.ranks.together(lambda: (fit(rows, targets, **options), []))
        self.ranks.copy_first(self.part.buffers())
        return self

    def _batch(
        self,
        features: Tensor,
        labels: Any,
        ignore_index: int = -100,
        smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> tuple[Tensor, Targets, list[int]]:
        """Features and targets of all ranks, once they are checked on each, and their numbers."""

        def check() -> tuple[Any, list[int]]:
            rows, targets = self._checked(features, labels, ignore_index, smoothing, reduction)
            has_counted = targets.counted is not None
            return (rows, targets), [len(rows), len(targets.labels), targets.one_each, has_counted]

        (rows, targets), table = self.ranks.together(check)
        sizes = [numbers[0] for numbers in table]
        return self.ranks.gather(rows, sizes), _gathered(targets, table, self.ranks), sizes

    def _own(self, losses: Tensor, sizes: list[int]) -> Tensor:
        return self.ranks.own(losses, sizes)

    def _check(self, head: Head) -> None:
        if not isinstance(head, Shardable):
            raise ParameterError(
                f"a {type(head).__name__} cannot be sharded, since its weights are not one row for "
                "each label: wrap the whole network in DistributedDataParallel, or use one of the "
                "heads Full, Sampling and Adversarial"
            )
        if not self.ranks.are_many:
            raise ParameterError(
                "a head is sharded among several processes, but this one is alone: start them with "
                "torchrun and call torch.distributed.init_process_group, or use head.shard()"
            )
        if self.ranks.world > self.n_labels:
            raise ParameterError(
                f"{self.n_labels:,} labels cannot be divided among {self.ranks.world:,} processes: "
                "use at most as many processes as there are labels"
            )
        facts = {
            "the head": type(head).__name__,
            "the loss of the head": self.loss_name,
            "the settings of the head": head.settings() if isinstance(head, SettledHead) else {},
            "the list of weights": {name: [*each.shape] for name, each in head.named_parameters()},
        }
        self.ranks.check_same(facts, "make the same head on every rank")


def _gathered(targets: Targets, table: list[list[int]], ranks: Ranks) -> Targets:
    """The targets of all ranks; numbers of each are in the table."""
    sizes, n_pairs, one_each, has_counted = zip(*table, strict=True)
    labels = ranks.gather(targets.labels, n_pairs)
    counts = ranks.gather(targets.counts, sizes)
    offsets = nn.functional.pad(counts.cumsum(0), (1, 0))
    if not any(has_counted):
        return Targets(offsets, labels, one_each=all(one_each))
    counted = targets.counted
    if counted is None:
        counted = torch.ones(len(targets), dtype=torch.bool, device=labels.device)
    counted = ranks.gather(counted.byte(), sizes).bool()
    return Targets(offsets, labels, counted, all(one_each))
