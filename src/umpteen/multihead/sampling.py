"""Multi-Head Sampling: a full layer of which a few groups are trained at a time (Algorithm 4)."""

import math
from collections.abc import Sequence
from typing import Any, Self

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
from umpteen.neural.losses import cross_entropy, precise
from umpteen.neural.sizes import check_room
from umpteen.neural.topk import best_by_blocks
from umpteen.validation import check_count

_SPREAD = 0.01


class SamplingHead(CodedHead):
    """One weight row per label, as in a full layer; a step touches only some groups of labels.

    `sampling="shared"`: the groups that hold the labels of any sample of the batch, and
    `n_random` more, are shared by all samples; one matrix product. `sampling="own"`: each
    sample has its true group and `n_random` others, drawn anew (MHS-S has S = n_random + 1).

    `loss="softmax"` takes one class per sample, `loss="bce"` any number of labels, in shared
    groups only. A step does not distinguish labels of groups that it leaves out: with few groups
    per step and `n_random=0`, use the features rather than the predictions.

    The code has two heads: `lengths` are the number of groups and their size. `topk` goes
    through all labels and is exact; scores are logits. With `sparse`, only rows in use get
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
        super().__init__(in_features, code_for(n_labels, code, lengths, LabelCode.descending))
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

    @property
    def n_groups(self) -> int:
        return self.code.n_groups[0]

    @property
    def group_size(self) -> int:
        return self.code.lengths[1]

    def losses(self, features: Tensor, targets: Targets, smoothing: float = 0.0) -> Tensor:
        if self.sampling == "own":
            return self._own_groups(features, self.places(targets.classes), smoothing)
        if self.loss_name == "softmax":
            logits, exists, columns = self._shared(features, targets.classes)
            return cross_entropy(logits, columns, smoothing, exists)
        logits, exists, columns = self._shared(features, targets.labels)
        truth = torch.zeros_like(logits)
        truth[targets.rows, columns] = 1
        entries = binary_cross_entropy_with_logits(logits, truth, reduction="none")
        return entries.masked_fill(~exists, 0).sum(1) / exists.sum(1).clamp(min=1)

    def init_bias(self, counts: Any, n_samples: int | None = None) -> Self:
        """Set the biases to the log-odds of the labels' frequencies; return the head itself.

        This has an effect only with `loss="bce"`. In a softmax over shared groups, frequent labels
        are also more often negatives, so initial biases would have to be unlearned.
        """
        if self.bias is not None and self.loss_name == "bce":
            frequencies = frequencies_of(counts, n_samples, self.n_labels)
            set_bias(self.bias.weight, frequencies.logit())
        return self

    def best_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        def score(first: int, last: int) -> Tensor:
            scores = features @ self.table.weight[first:last].T
            return scores if self.bias is None else scores + self.bias.weight[first:last, 0]

        return best_by_blocks(score, len(features), self.n_labels, k)

    def _shared(self, features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of shared groups, which of them exist, and the columns of `labels` in them.

        FastSampling of Algorithm 4. The last group may be smaller, and a graph that is compiled
        has as many columns as if each label had a group of its own.
        """
        places = self.places(labels)
        groups, is_used = self._shared_groups(places)
        inner = torch.arange(self.group_size, device=groups.device)
        candidates = groups[:, None] * self.group_size + inner
        exists = ((candidates < self.n_labels) & is_used[:, None]).flatten()
        chosen = self.labels(candidates.flatten().clamp(max=self.n_labels - 1))
        logits = precise(features @ self.table(chosen).T)
        if self.bias is not None:
            logits = logits + self.bias(chosen)[:, 0]
        slots = torch.zeros(self.n_groups, dtype=torch.int64, device=groups.device)
        slots[groups] = torch.arange(len(groups), device=groups.device)
        columns = slots[places // self.group_size] * self.group_size + places % self.group_size
        return logits, exists.expand_as(logits), columns

    def _shared_groups(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """The groups of these places, and `n_random` others, and which of them are used."""
        luck = torch.rand(self.n_groups, device=places.device)
        luck[places // self.group_size] = 2.0
        n_most = min(self.n_groups, len(places) + self.n_random)
        n_used = (luck == 2).sum() + self.n_random
        if not torch.compiler.is_compiling():
            n_most = min(self.n_groups, int(n_used))
        groups = luck.topk(n_most).indices
        return groups, torch.arange(n_most, device=groups.device) < n_used

    def _own_groups(self, features: Tensor, places: Tensor, smoothing: float) -> Tensor:
        own = places[:, None] // self.group_size
        others = distinct_others(own, self.n_groups, min(self.n_random, self.n_groups - 1))
        groups = torch.cat([own, others], dim=1)  # (n, 1 + n_random), the true one first
        inner = torch.arange(self.group_size, device=groups.device)
        all_places = (groups[:, :, None] * self.group_size + inner).flatten(1)
        exists = all_places < self.n_labels
        labels = self.labels(all_places.clamp(max=self.n_labels - 1))
        samples = torch.arange(len(features), device=labels.device)
        logits = row_products(
            features, self.table.weight, samples, labels, sparse=self.table.sparse
        )
        if self.bias is not None:
            logits = logits + self.bias(labels)[..., 0]
        return cross_entropy(logits, places % self.group_size, smoothing, exists)
