"""Multi-Head Product: every head finds one digit of the label (Algorithm 2 of the paper)."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from umpteen.errors import ParameterError
from umpteen.multihead.code import LabelCode
from umpteen.multihead.coded import CodedHead, check_choice, code_for
from umpteen.multihead.product_search import CodeScores
from umpteen.neural import Targets
from umpteen.neural.frequencies import frequencies_of, set_bias
from umpteen.neural.labels import check_range
from umpteen.neural.losses import cross_entropy, precise
from umpteen.validation import check_k

LOSSES = ("softmax", "joint", "bce")


class ProductHead(CodedHead):
    """One linear layer with `sum(lengths)` outputs instead of one per label.

    For one class per sample: with several, digits of one label would be combined with those of
    another, which is refused. Take `CascadeHead` there, or `PowersetHead` for sets.

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

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), "n_groups": self.n_groups}

    def losses(self, features: Tensor, targets: Targets, smoothing: float = 0.0) -> Tensor:
        digits = self.code.digits(self.places(targets.classes))  # (n, heads)
        logits = precise(self.linear(features))
        if self.loss_name == "softmax":
            return self._negative_log_likelihood(logits, digits, smoothing)
        columns = self._columns(digits)
        if self.loss_name == "joint":
            own: Tensor = logits.log_softmax(1).gather(1, columns)
            return -own.sum(1)
        hot = torch.zeros_like(logits).scatter_(1, columns, 1.0)
        return binary_cross_entropy_with_logits(logits, hot, reduction="none").mean(1)

    def best_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        return self._code_scores(features).topk(k, features.dtype)

    def log_proba(self, features: Tensor, labels: Tensor) -> Tensor:
        """Return log-probabilities of `labels`, `(n, m)`, among all labels of each sample."""
        check_range(labels, self.n_labels)
        scores = self._code_scores(self._rows(features))
        return (scores.of(self.places(labels)) - scores.log_total()[:, None]).to(features.dtype)

    def init_bias(self, counts: Any, n_samples: int | None = None) -> Self:
        """Set the biases of each head to the frequencies of its digits; return the head itself."""
        frequencies = frequencies_of(counts, n_samples, self.n_labels)
        digits = self.code.encode(torch.arange(self.n_labels))
        shares = [
            torch.zeros(length, dtype=torch.float64).index_add(0, digits[:, h], frequencies)
            for h, length in enumerate(self.code.lengths)
        ]
        each = torch.cat(shares).clamp(1e-9, 1 - 1e-9)
        start = each.logit() if self.loss_name == "bce" else each.log()
        set_bias(self.linear.bias, start.repeat(self.n_groups))
        return self

    def _negative_log_likelihood(self, logits: Tensor, digits: Tensor, smoothing: float) -> Tensor:
        """-log p(class), `(n,)`; with one group, the sum of the heads' cross-entropies."""
        heads = self._by_head(logits)
        if self.n_groups == 1:
            losses = [cross_entropy(o[:, 0], digits[:, h], smoothing) for h, o in enumerate(heads)]
            return torch.stack(losses).sum(0)
        samples = torch.arange(len(digits), device=digits.device)
        own = [outputs[samples, :, digits[:, h]] for h, outputs in enumerate(heads)]
        total = torch.stack([outputs.logsumexp(2) for outputs in heads]).sum(0)  # (n, groups)
        return total.logsumexp(1) - torch.stack(own).sum(0).logsumexp(1)

    def _check_smoothing(self, smoothing: float) -> None:
        super()._check_smoothing(smoothing)
        if smoothing and self.n_groups > 1:
            raise ParameterError(
                f"label_smoothing={smoothing!r} has no closed form with n_groups={self.n_groups}: "
                "leave it out, or use n_groups=1"
            )

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
        outputs = logsigmoid(outputs) if self.loss_name == "bce" else outputs
        return CodeScores(self.code, self._by_head(outputs), self.place_of, self.label_at)
