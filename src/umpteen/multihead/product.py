"""Multi-Head Product: every head finds one digit of the label (Algorithm 2 of the paper)."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from umpteen.multihead.code import LabelCode
from umpteen.multihead.coded import CodedHead, check_choice, code_for
from umpteen.multihead.product_search import CodeScores
from umpteen.neural import Targets
from umpteen.neural.head import check_batch, check_range
from umpteen.validation import check_k

LOSSES = ("softmax", "joint", "bce")


class ProductHead(CodedHead):
    """One linear layer with `sum(lengths)` outputs instead of one per label.

    For one class per sample: with several, digits of one label would be combined with those of
    another, and `loss` raises. Take `CascadeHead` there, or `PowersetHead` for sets.

    `loss` is `"softmax"` (cross-entropy of every head: the likelihood of the class), `"joint"`
    (one softmax over all heads' outputs) or `"bce"` (the paper's Algorithm 2). `n_groups` > 1
    sums the products of several groups of heads (Eq. 16, a CP decomposition), each made positive
    by exp, which Theorem 1 needs; then the likelihood still has a closed form, and only
    `"softmax"` is possible.

    `topk` is exact, its scores are log-probabilities among the labels that exist.

    >>> head = ProductHead(8, 1000, n_heads=3)
    >>> head.code.lengths, head.n_parameters
    ([10, 10, 10], 270)
    """

    def __init__(
        self,
        in_features: int,
        n_labels: int | LabelCode,
        *,
        lengths: Sequence[int] | None = None,
        n_heads: int = 2,
        code: LabelCode | None = None,
        n_groups: int = 1,
        loss: str = "softmax",
    ) -> None:
        default = partial(LabelCode.balanced, n_heads=n_heads)
        super().__init__(in_features, code_for(n_labels, code, lengths, default))
        self.n_groups = check_k(n_groups, "n_groups")
        check_choice(loss, "loss", LOSSES if n_groups == 1 else LOSSES[:1])
        self.loss_name = loss
        self.linear = nn.Linear(in_features, n_groups * sum(self.code.lengths))

    def loss(self, features: Tensor, targets: Targets) -> Tensor:
        check_batch(self, features, targets)
        digits = self.code.digits(self.places(targets.classes))  # (n, heads)
        if self.loss_name == "softmax":
            return self._negative_log_likelihood(features, digits)
        logits, columns = self.linear(features), self._columns(digits)
        if self.loss_name == "joint":
            own: Tensor = logits.log_softmax(1).gather(1, columns)
            return -own.sum(1).mean()
        hot = torch.zeros_like(logits).scatter_(1, columns, 1.0)
        return functional.binary_cross_entropy_with_logits(logits, hot)

    @torch.no_grad()
    def topk(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        check_batch(self, features)
        return self._code_scores(features).topk(self.n_best(k), features.dtype)

    def log_proba(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return log-probabilities of `labels`, `(n, m)`, among all labels of each sample."""
        check_batch(self, features)
        check_range(labels, self.n_labels)
        scores = self._code_scores(features)
        return (scores.of(self.places(labels)) - scores.log_total()[:, None]).to(features.dtype)

    def _negative_log_likelihood(self, features: Tensor, digits: Tensor) -> Tensor:
        """Mean of -log p(class); with one group, the sum of the heads' cross-entropies."""
        heads = self._by_head(self.linear(features))
        if self.n_groups == 1:
            losses = [functional.cross_entropy(o[:, 0], digits[:, h]) for h, o in enumerate(heads)]
            return torch.stack(losses).sum()
        own = [
            outputs[torch.arange(len(digits)), :, digits[:, h]] for h, outputs in enumerate(heads)
        ]
        total = torch.stack([outputs.logsumexp(2) for outputs in heads]).sum(0)  # (n, groups)
        return (total.logsumexp(1) - torch.stack(own).sum(0).logsumexp(1)).mean()

    def _by_head(self, outputs: Tensor) -> tuple[Tensor, ...]:
        """`(n, groups, length)` per head."""
        groups: Tensor = outputs.unflatten(1, (self.n_groups, -1))
        return tuple(torch.split(groups, self.code.lengths, dim=2))

    def _columns(self, digits: Tensor) -> Tensor:
        """Where digits stand among the outputs of all heads."""
        lengths = torch.tensor([0, *self.code.lengths[:-1]], device=digits.device)
        return digits + lengths.cumsum(0)

    def _code_scores(self, features: Tensor) -> CodeScores:
        outputs = self.linear(features).double()
        outputs = functional.logsigmoid(outputs) if self.loss_name == "bce" else outputs
        return CodeScores(self.code, self._by_head(outputs), self.place_of, self.label_at)
