"""Multi-Head Cascade: from coarse groups to labels (Algorithm 3 of the paper, put right)."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from umpteen.errors import ParameterError
from umpteen.multihead.cascade_level import CascadeLevel
from umpteen.multihead.cascade_loss import path_losses, sigmoid_losses
from umpteen.multihead.code import LabelCode
from umpteen.multihead.coded import CodedHead, check_choice, code_for
from umpteen.neural import Targets
from umpteen.neural.frequencies import frequencies_of, set_bias
from umpteen.neural.head import softmax_or_bce
from umpteen.neural.losses import precise
from umpteen.neural.sizes import check_room
from umpteen.neural.topk import best_labels
from umpteen.validation import check_k

_MAX_ENTRIES = 2**25  # of gathered table rows at a time


class CascadeHead(CodedHead):
    """Finds the best groups of labels first, and then scores only the labels of these groups.

    The first head is a linear layer over groups. Each further head computes a query vector of
    length `hidden`, and compares it with the table rows of the children of the groups found so far.
    So a sample costs `in_features * n_groups + n_candidates * group_size * hidden`. The tables
    still have one row per label.

    `loss="softmax"` takes one class per sample: cross-entropy over groups, then within the true
    group, so that scores are probabilities of classes. `loss="bce"` takes any number of labels per
    sample: every head is trained by binary cross-entropy over its candidates. These are the
    `n_candidates` best groups and, in training, all true groups.

    A score of `topk` is the logarithm of the product of the scores of a label and of its groups.
    Each head keeps `n_candidates` groups; if these are all groups, all labels are compared. If
    there are fewer candidates than k, the remaining places hold -1. With `sparse`, only table rows
    in use get gradients, as a sparse tensor: for SGD, SparseAdam or `umpteen.neural.RowAdam`. With
    `bias`, each label has a bias for its frequency within its group: see `init_bias`.

    >>> head = CascadeHead(8, 1000, lengths=[50, 20], hidden=16)
    >>> head.n_parameters == 50 * (8 + 1) + 16 * (8 + 1) + 1000 * (16 + 1)
    True
    """

    def __init__(
        self,
        in_features: int,
        n_labels: int | LabelCode,
        *,
        lengths: Sequence[int] | None = None,
        n_heads: int = 2,
        code: LabelCode | None = None,
        n_candidates: int = 10,
        hidden: int = 256,
        loss: str = "softmax",
        bias: bool = True,
        sparse: bool = False,
    ) -> None:
        default = partial(LabelCode.descending, n_heads=n_heads)
        super().__init__(in_features, code_for(n_labels, code, lengths, default))
        if self.code.n_heads < 2:
            raise ParameterError(
                f"a cascade needs 2 heads or more, but lengths are {self.code.lengths}"
            )
        check_choice(loss, "loss", ("softmax", "bce"))
        self.loss_name = loss
        self.n_candidates = check_k(n_candidates, "n_candidates")
        check_k(hidden, "hidden")
        sizes = self.code.n_groups
        check_room(in_features * sizes[0] + hidden * sum(sizes[1:]))
        self.groups = nn.Linear(in_features, sizes[0])
        if loss == "bce":  # before training, a group is as likely as one among all
            nn.init.constant_(self.groups.bias, -math.log(sizes[0]))
        self.levels = nn.ModuleList(
            CascadeLevel(in_features, hidden, length, size, bias=bias, sparse=sparse)
            for length, size in zip(self.code.lengths[1:], sizes[1:], strict=True)
        )

    default_loss = staticmethod(softmax_or_bce)

    @property
    def steps(self) -> list[CascadeLevel]:
        """Return the heads after the first."""
        return [cast(CascadeLevel, level) for level in self.levels]

    def losses(self, features: Tensor, targets: Targets, smoothing: float = 0.0) -> Tensor:
        if self.loss_name == "softmax":
            return path_losses(self, features, self.nodes(targets.classes), smoothing)
        return sigmoid_losses(self, features, targets.rows, self.nodes(targets.labels))

    def init_bias(self, counts: Any, n_samples: int | None = None) -> Self:
        """Set the biases of groups and labels by their frequencies; return the head itself.

        A label's is that among the samples of its group.
        """
        frequencies = frequencies_of(counts, n_samples, self.n_labels)
        paths = self.nodes(torch.arange(self.n_labels, device=self.groups.bias.device))
        sizes = self.code.n_groups
        shares = [
            torch.zeros(size, dtype=torch.float64).index_add(0, nodes.cpu(), frequencies)
            for nodes, size in zip(paths, sizes, strict=True)
        ]
        set_bias(self.groups.bias, self._start(shares[0]))
        for level, above, own in zip(self.steps, shares, shares[1:], strict=False):
            parents = torch.arange(len(own)) // level.length
            if level.bias is not None:
                set_bias(level.bias.weight, self._start(own / above[parents]))
        return self

    def _start(self, shares: Tensor) -> Tensor:
        """The bias of nodes that are right so often."""
        shares = shares.clamp(1e-9, 1 - 1e-3)
        return shares.log() if self.loss_name == "softmax" else shares.logit()

    def nodes(self, labels: Tensor) -> list[Tensor]:
        """Return the group of each label at every head; at the last one, its place."""
        places = self.places(labels)
        return [places // stride for stride in self.code.strides]

    def best_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        width = min(self.n_candidates, self.code.n_groups[-2]) * max(self.code.lengths[1:])
        n_rows = max(1, _MAX_ENTRIES // (width * self.steps[0].hidden))
        blocks = [self._topk(rows, k) for rows in features.split(n_rows)] or [
            self._topk(features, k)
        ]
        labels, scores = zip(*blocks, strict=True)
        return torch.cat(labels), torch.cat(scores)

    def _topk(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        scores = self.log_scores(precise(self.groups(features)))
        nodes = torch.arange(scores.shape[1], device=features.device).expand_as(scores)
        for level in self.steps:
            nodes, scores = best_labels(scores, nodes, min(self.n_candidates, scores.shape[1]))
            nodes, scores = level.continued(features, nodes, scores, self.log_scores)
        exists = scores > -torch.inf
        return best_labels(scores, self.labels(nodes * exists), k)

    def log_proba_of(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return the log-probabilities of labels `(n, m)`, whatever the best groups are."""
        nodes = self.nodes(labels)
        scores = self.log_scores(precise(self.groups(features))).gather(1, nodes[0])
        for level, groups, own in zip(self.steps, nodes, nodes[1:], strict=False):
            below = level.continued(features, groups, scores, self.log_scores)[1]
            each = below.view(*labels.shape, level.length)
            scores = each.gather(2, (own % level.length)[..., None])[..., 0]
        return scores

    def log_scores(self, logits: Tensor) -> Tensor:
        """Return log-probabilities of siblings, the last axis; -inf stays."""
        softmax = self.loss_name == "softmax"
        return logits.log_softmax(-1) if softmax else functional.logsigmoid(logits)
