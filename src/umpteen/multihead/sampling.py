"""Multi-Head Sampling: a full layer of which a few groups are trained at a time (Algorithm 4)."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from umpteen.errors import ParameterError
from umpteen.multihead.code import LabelCode
from umpteen.multihead.coded import CodedHead, check_choice, code_for
from umpteen.multihead.row_products import row_products
from umpteen.multihead.sampled_groups import distinct_others
from umpteen.neural import Targets
from umpteen.neural.frequencies import frequencies_of, set_bias
from umpteen.neural.head import softmax_or_bce
from umpteen.neural.logits import LogitHead, Scorer
from umpteen.neural.losses import cross_entropy, precise
from umpteen.neural.ranks import Ranks
from umpteen.neural.sizes import check_room
from umpteen.neural.split import SplitLogits
from umpteen.validation import check_count

_SPREAD = 0.01
_MOST_IN_GROUP = 32  # labels; larger groups cost more (benchmarks/results/sampling_groups.md)


class SamplingHead(CodedHead, LogitHead):
    """One weight row per label, as in a full layer; a step touches only some groups of labels.

    `sampling="shared"`: the groups that hold the labels of any sample of the batch, and
    `n_random` more, are shared by all samples; one matrix product. `sampling="own"`: each
    sample has its true group and `n_random` others, drawn anew (MHS-S has S = n_random + 1).

    `loss="softmax"` takes one class per sample, `loss="bce"` any number of labels, in shared
    groups only. A step does not distinguish labels of groups that it leaves out: with few groups
    per step and `n_random=0`, use the features rather than the predictions.

    The code has two heads: `lengths` are the number of groups and their size, by default the cube
    root of `n_labels`, 32 at most. Weights do not depend on the groups. `topk` goes through all
    labels and is exact; scores are logits. With `sparse`, only rows in use get
    gradients, as a sparse tensor: for SGD, SparseAdam or `umpteen.neural.RowAdam`. With `bias`,
    each label has a bias for its frequency: see `init_bias`.

    >>> head = SamplingHead(8, 1000, lengths=[50, 20])
    >>> head.n_parameters
    9000
    """

    def __init__(
        self,
        in_features: int,
        n_labels: int | LabelCode,
        *,
        lengths: Sequence[int] | None = None,
        code: LabelCode | None = None,
        sampling: str = "shared",
        n_random: int = 1,
        loss: str = "softmax",
        bias: bool = True,
        sparse: bool = False,
    ) -> None:
        super().__init__(in_features, code_for(n_labels, code, lengths, _small_groups))
        if self.code.n_heads != 2:
            raise ParameterError(
                f"sampling needs groups and their size, two lengths, but got {self.code.lengths}"
            )
        check_choice(sampling, "sampling", ("shared", "own"))
        check_choice(loss, "loss", ("softmax", "bce") if sampling == "shared" else ("softmax",))
        self.sampling, self.loss_name = sampling, loss
        self.n_random = check_count(n_random, "n_random")
        check_room(self.n_labels * in_features)
        self.table = nn.Embedding(self.n_labels, in_features, sparse=sparse)
        nn.init.normal_(self.table.weight, std=_SPREAD)
        self.bias = nn.Embedding(self.n_labels, 1, sparse=sparse) if bias else None
        if self.bias is not None:  # before training, a label is as likely as one among all
            nn.init.constant_(self.bias.weight, -math.log(self.n_labels) * (loss == "bce"))

    default_loss = staticmethod(softmax_or_bce)
    free_settings: ClassVar[tuple[str, ...]] = ("lengths",)

    @property
    def n_groups(self) -> int:
        return self.code.n_groups[0]

    @property
    def group_size(self) -> int:
        return self.code.lengths[1]

    def losses(self, features: Tensor, targets: Targets, smoothing: float = 0.0) -> Tensor:
        found = self._candidates(targets)
        if self.sampling == "own":
            samples = torch.arange(len(features), device=features.device)
            logits = self._row_logits(features, samples, found.labels)
            return cross_entropy(logits, found.columns, smoothing, found.exists)
        logits = self._logits(features, found.labels)
        exists = found.exists.expand_as(logits)
        if self.loss_name == "softmax":
            return cross_entropy(logits, found.columns, smoothing, exists)
        truth = torch.zeros_like(logits)
        truth[targets.rows, found.columns] = 1
        entries = binary_cross_entropy_with_logits(logits, truth, reduction="none")
        return entries.masked_fill(~exists, 0).sum(1) / exists.sum(1).clamp(min=1)

    def losses_of_share(
        self, features: Tensor, targets: Targets, smoothing: float, ranks: Ranks
    ) -> Tensor:
        """Return what `losses` returns, if each rank has the rows of some labels."""
        with ranks.same_draws(features.device):
            found = self._candidates(targets)
        if self.sampling == "own":
            logits = ranks.scores(
                found.labels, lambda samples, rows: self._row_logits(features, samples, rows)
            )
            return cross_entropy(logits, found.columns, smoothing, found.exists)
        here = found.exists & ranks.holds(found.labels)
        logits = self._logits(features, found.labels[here] // ranks.world)
        held, columns = here[found.columns], here.cumsum(0) - 1
        split = SplitLogits(
            logits, targets.rows[held], columns[found.columns[held]], int(found.exists.sum()), ranks
        )
        if self.loss_name == "softmax":
            return split.softmax(smoothing)
        return split.bce() / max(1, split.n_columns)

    def init_bias(self, counts: Any, n_samples: int | None = None) -> Self:
        """Set the biases by the labels' frequencies, but not in a softmax over shared groups.

        There, frequent labels are also more often negatives, so initial biases would have to be
        unlearned. With groups of its own, each sample has such negatives as often as others.
        Return the head itself.
        """
        if self.bias is not None and (self.loss_name == "bce" or self.sampling == "own"):
            frequencies = frequencies_of(counts, n_samples, self.n_labels)
            own = frequencies.logit() if self.loss_name == "bce" else frequencies.log()
            set_bias(self.bias.weight, own)
        return self

    @property
    def n_rows(self) -> int:
        return len(self.table.weight)

    def scorer(self, features: Tensor) -> Scorer:
        def score(first: int, last: int) -> Tensor:
            scores = features @ self.table.weight[first:last].T
            return scores if self.bias is None else scores + self.bias.weight[first:last, 0]

        return score

    def best_of_share(self, features: Tensor, k: int, ranks: Ranks) -> tuple[Tensor, Tensor]:
        """Return the best rows of this rank, and their scores."""
        return self.best_of(features, k)

    def _logits(self, features: Tensor, rows: Tensor) -> Tensor:
        """Return the logits of all samples with the same rows of the table, `(n, m)`."""
        logits = precise(features @ self.table(rows).T)
        return logits if self.bias is None else logits + self.bias(rows)[:, 0]

    def _row_logits(self, features: Tensor, samples: Tensor, rows: Tensor) -> Tensor:
        """Return logits of samples, each with rows of its own, `(pairs, m)` like `rows`."""
        logits = row_products(features, self.table.weight, samples, rows, sparse=self.table.sparse)
        return logits if self.bias is None else logits + self.bias(rows)[..., 0]

    def _candidates(self, targets: Targets) -> "_Candidates":
        if self.sampling == "own":
            return self._own_groups(self.places(targets.classes))
        one_class = self.loss_name == "softmax"
        return self._shared_groups(self.places(targets.classes if one_class else targets.labels))

    def _shared_groups(self, places: Tensor) -> "_Candidates":
        """FastSampling of Algorithm 4.

        The last group may be smaller, and a graph that is compiled has as many columns as if each
        label had a group of its own.
        """
        groups, is_used = self._drawn_groups(places)
        inner = torch.arange(self.group_size, device=groups.device)
        candidates = groups[:, None] * self.group_size + inner
        exists = ((candidates < self.n_labels) & is_used[:, None]).flatten()
        labels = self.labels(candidates.flatten().clamp(max=self.n_labels - 1))
        slots = torch.zeros(self.n_groups, dtype=torch.int64, device=groups.device)
        slots[groups] = torch.arange(len(groups), device=groups.device)
        columns = slots[places // self.group_size] * self.group_size + places % self.group_size
        return _Candidates(labels, exists, columns)

    def _drawn_groups(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return the groups of these places and `n_random` others, and which are used."""
        luck = torch.rand(self.n_groups, device=places.device)
        luck[places // self.group_size] = 2.0
        n_most = min(self.n_groups, len(places) + self.n_random)
        n_used = (luck == 2).sum() + self.n_random
        if not torch.compiler.is_compiling():
            n_most = min(self.n_groups, int(n_used))
        groups = luck.topk(n_most).indices
        return groups, torch.arange(n_most, device=groups.device) < n_used

    def _own_groups(self, places: Tensor) -> "_Candidates":
        own = places[:, None] // self.group_size
        others = distinct_others(own, self.n_groups, min(self.n_random, self.n_groups - 1))
        groups = torch.cat([own, others], dim=1)  # (n, 1 + n_random), the true one first
        inner = torch.arange(self.group_size, device=groups.device)
        all_places = (groups[:, :, None] * self.group_size + inner).flatten(1)
        labels = self.labels(all_places.clamp(max=self.n_labels - 1))
        return _Candidates(labels, all_places < self.n_labels, places % self.group_size)


def _small_groups(n_labels: int) -> LabelCode:
    code = LabelCode.descending(n_labels)
    if code.lengths[1] <= _MOST_IN_GROUP:
        return code
    return LabelCode(n_labels, [math.ceil(n_labels / _MOST_IN_GROUP), _MOST_IN_GROUP])


class _Candidates(NamedTuple):
    """Labels that a step compares, and the columns of the relevant ones among them."""

    labels: Tensor  # (m,), or (n, m) if each sample has its own
    exists: Tensor  # the same
    columns: Tensor  # (pairs,), or (n,)
