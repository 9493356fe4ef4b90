"""Multi-Head Sampling: a full layer of which a few groups are trained at a time (Algorithm 4)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from umpteen.errors import ParameterError
from umpteen.multihead.code import LabelCode
from umpteen.multihead.coded import CodedHead, check_choice, code_for
from umpteen.multihead.row_products import row_products
from umpteen.multihead.sampled_groups import distinct_others
from umpteen.neural import Targets
from umpteen.neural.head import check_batch, softmax_or_bce
from umpteen.neural.topk import best_by_blocks
from umpteen.validation import check_count

_SPREAD = 0.01


class SamplingHead(CodedHead):
    """One weight row per label, as in a full layer; a step touches only some groups of labels.

    `sampling="shared"`: the groups that hold the labels of any sample of the batch, and
    `n_random` more, are shared by all samples; one matrix product. `sampling="own"`: each
    sample has its true group and `n_random` others, drawn anew (MHS-S has S = n_random + 1).

    `loss="softmax"` takes one class per sample, `loss="bce"` any number of labels, in shared
    groups only. Groups that a step leaves out are not told apart from the others: with few
    groups per step and `n_random=0`, use the features rather than the answers.

    The code has two heads: `lengths` are the number of groups and their size. `topk` goes
    through all labels and is exact; scores are logits. With `sparse`, only rows in use get
    gradients, as a sparse tensor: for SGD or SparseAdam.

    >>> head = SamplingHead(8, 1000, lengths=[50, 20])
    >>> head.n_parameters
    8000
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
        self.table = nn.Embedding(self.n_labels, in_features, sparse=sparse)
        nn.init.normal_(self.table.weight, std=_SPREAD)

    default_loss = staticmethod(softmax_or_bce)

    @property
    def n_groups(self) -> int:
        return self.code.n_groups[0]

    @property
    def group_size(self) -> int:
        return self.code.lengths[1]

    def loss(self, features: Tensor, targets: Targets) -> Tensor:
        check_batch(self, features, targets)
        if self.sampling == "own":
            return self._own_groups(features, self.places(targets.classes))
        if self.loss_name == "softmax":
            logits, columns = self._shared(features, targets.classes)
            return functional.cross_entropy(logits, columns)
        logits, columns = self._shared(features, targets.labels)
        truth = torch.zeros_like(logits)
        truth[targets.rows, columns] = 1
        return functional.binary_cross_entropy_with_logits(logits, truth)

    @torch.no_grad()
    def topk(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        check_batch(self, features)

        def score(first: int, last: int) -> Tensor:
            return features @ self.table.weight[first:last].T

        return best_by_blocks(score, len(features), self.n_labels, self.n_best(k))

    def _shared(self, features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of shared groups, and the columns of `labels` in them (FastSampling)."""
        places = self.places(labels)
        groups = self._shared_groups(places)
        return self._logits(features, groups), self._columns(places, groups)

    def _shared_groups(self, places: Tensor) -> Tensor:
        """The groups of these places, and `n_random` others; sorted."""
        groups = torch.unique(places // self.group_size)
        n_random = min(self.n_random, self.n_groups - len(groups))
        others = distinct_others(groups[None], self.n_groups, n_random)[0]
        return torch.cat([groups, others]).sort().values

    def _logits(self, features: Tensor, groups: Tensor) -> Tensor:
        """Of all labels of some sorted groups; only the very last group may be smaller."""
        inner = torch.arange(self.group_size, device=groups.device)
        places = (groups[:, None] * self.group_size + inner).flatten()
        rows: Tensor = self.table(self.labels(places[places < self.n_labels]))
        return features @ rows.T

    def _columns(self, places: Tensor, groups: Tensor) -> Tensor:
        """Where places stand among the labels of sorted groups."""
        position = torch.searchsorted(groups, places // self.group_size)
        return position * self.group_size + places % self.group_size

    def _own_groups(self, features: Tensor, places: Tensor) -> Tensor:
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
        ).masked_fill(~exists, -torch.inf)
        return functional.cross_entropy(logits, places % self.group_size)
