"""Multi-Head Product: every head finds one digit of the label (Algorithm 2 of the paper)."""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, logsigmoid

from umpteen.errors import ParameterError
from umpteen.multihead.code import LabelCode
from umpteen.multihead.coded import CodedHead, check_choice, code_for
from umpteen.multihead.orders import shuffled_order
from umpteen.multihead.product_search import CodeScores
from umpteen.multihead.several_codes import SeveralCodes
from umpteen.neural import Targets
from umpteen.neural.frequencies import frequencies_of, set_bias
from umpteen.neural.losses import cross_entropy, precise
from umpteen.neural.sizes import check_room
from umpteen.validation import check_k

LOSSES = ("softmax", "joint", "bce")


class ProductHead(CodedHead):
    """One linear layer with `sum(lengths)` outputs instead of one per label.

    It is for one class per sample. Several labels raise an error, because digits of different
    labels would be combined; use `CascadeHead`, or `PowersetHead` for label sets.

    `loss` is `"softmax"` (cross-entropy of every head: the likelihood of the class), `"joint"`
    (one softmax over all heads' outputs) or `"bce"` (the paper's Algorithm 2). `n_groups` > 1
    sums the products of several groups of heads (Eq. 16, a CP decomposition), each made positive
    by exp, which Theorem 1 needs; then the likelihood still has a closed form, and only
    `"softmax"` is possible.

    `n_codes` > 1 gives each label several codes, all but the first with labels in another random
    order, and heads for each. Labels that share a digit in one code rarely do in another. Every
    code learns by itself, with the loss `"softmax"`, and a label's score is the mean of its
    log-probabilities under all of them.

    `topk` is exact. Scores are log-probabilities among the labels that exist; with several codes,
    the mean over codes is a lower bound of one: the probabilities add up to 1 at most.

    >>> head = ProductHead(8, 1000, n_heads=3)
    >>> head.code.lengths, head.n_parameters
    ([10, 10, 10], 270)
    """

    named_options: ClassVar[dict[str, Any]] = {"n_codes": 4}  # of `head="product"`
    label_at_more: Tensor | None  # (n_codes - 1, n_labels)
    place_of_more: Tensor | None

    def __init__(
        self,
        in_features: int,
        n_labels: int | LabelCode,
        *,
        lengths: Sequence[int] | None = None,
        n_heads: int = 2,
        code: LabelCode | None = None,
        n_groups: int = 1,
        n_codes: int = 1,
        loss: str = "softmax",
    ) -> None:
        default = partial(LabelCode.balanced, n_heads=n_heads)
        super().__init__(in_features, code_for(n_labels, code, lengths, default))
        self.n_groups = check_k(n_groups, "n_groups")
        self.n_codes = check_k(n_codes, "n_codes")
        if n_codes > 1 and n_groups > 1:
            raise ParameterError(
                f"n_groups={n_groups} and n_codes={n_codes} cannot be combined: use one of them"
            )
        alone = n_groups == n_codes == 1
        check_choice(loss, "loss", LOSSES if alone else LOSSES[:1])
        self.loss_name = loss
        self.register_buffer("label_at_more", None)
        self.register_buffer("place_of_more", None, persistent=False)
        if n_codes > 1:
            orders = [shuffled_order(self.n_labels, seed) for seed in range(1, n_codes)]
            self._use_more(torch.from_numpy(np.stack(orders)))
        n_outputs = n_groups * n_codes * sum(self.code.lengths)
        check_room(in_features * n_outputs)
        self.linear = nn.Linear(in_features, n_outputs)

    def settings(self) -> dict[str, Any]:
        more = {"n_codes": self.n_codes} if self.n_codes > 1 else {}
        return {**super().settings(), "n_groups": self.n_groups, **more}

    def losses(self, features: Tensor, targets: Targets, smoothing: float = 0.0) -> Tensor:
        logits = precise(self.linear(features))
        if self.n_codes > 1:
            return self._losses_of_codes(logits, targets.classes, smoothing)
        digits = self.code.digits(self.places(targets.classes))  # (n, heads)
        if self.loss_name == "softmax":
            return self._negative_log_likelihood(logits, digits, smoothing)
        columns = self._columns(digits)
        if self.loss_name == "joint":
            own: Tensor = logits.log_softmax(1).gather(1, columns)
            return -own.sum(1)
        hot = torch.zeros_like(logits).scatter_(1, columns, 1.0)
        return binary_cross_entropy_with_logits(logits, hot, reduction="none").mean(1)

    def best_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        if self.n_codes > 1:
            return self._several_codes(features).topk(k, features.dtype)
        return self._code_scores(features).topk(k, features.dtype)

    def log_proba_of(self, features: Tensor, labels: Tensor) -> Tensor:
        if self.n_codes > 1:
            codes = self._several_codes(features)
            mean = (codes.of(labels) - codes.log_total()[:, None]) / self.n_codes
            return mean.to(features.dtype)
        scores = self._code_scores(features)
        return (scores.of(self.places(labels)) - scores.log_total()[:, None]).to(features.dtype)

    def init_bias(self, counts: Any, n_samples: int | None = None) -> Self:
        """Set the biases of each head to the frequencies of its digits; return the head itself."""
        frequencies = frequencies_of(counts, n_samples, self.n_labels)
        starts = []
        for places in self._places_of(torch.arange(self.n_labels, device=self.linear.bias.device)):
            digits = self.code.digits(places.cpu())
            shares = [
                torch.zeros(length, dtype=torch.float64).index_add(0, digits[:, h], frequencies)
                for h, length in enumerate(self.code.lengths)
            ]
            each = torch.cat(shares).clamp(1e-9, 1 - 1e-9)
            starts.append(each.logit() if self.loss_name == "bce" else each.log())
        set_bias(self.linear.bias, torch.cat(starts).repeat(self.n_groups))
        return self

    def _negative_log_likelihood(self, logits: Tensor, digits: Tensor, smoothing: float) -> Tensor:
        """-log p(class), `(n,)`; with one group, the sum of the heads' cross-entropies."""
        heads = self._by_head(logits, self.n_groups)
        if self.n_groups == 1:
            losses = [cross_entropy(o[:, 0], digits[:, h], smoothing) for h, o in enumerate(heads)]
            return torch.stack(losses).sum(0)
        samples = torch.arange(len(digits), device=digits.device)
        own = [outputs[samples, :, digits[:, h]] for h, outputs in enumerate(heads)]
        total = torch.stack([outputs.logsumexp(2) for outputs in heads]).sum(0)  # (n, groups)
        return total.logsumexp(1) - torch.stack(own).sum(0).logsumexp(1)

    def _losses_of_codes(self, logits: Tensor, classes: Tensor, smoothing: float) -> Tensor:
        """The mean over codes of -log p(class), `(n,)`."""
        heads, losses = self._by_head(logits, self.n_codes), []
        for code, places in enumerate(self._places_of(classes)):
            digits = self.code.digits(places)
            losses += [
                cross_entropy(outputs[:, code], digits[:, h], smoothing)
                for h, outputs in enumerate(heads)
            ]
        return torch.stack(losses).sum(0) / self.n_codes

    def _check_smoothing(self, smoothing: float) -> None:
        super()._check_smoothing(smoothing)
        if smoothing and self.n_groups > 1:
            raise ParameterError(
                f"label_smoothing={smoothing!r} has no closed form with n_groups={self.n_groups}: "
                "leave it out, or use n_groups=1"
            )

    def _places_of(self, labels: Tensor) -> list[Tensor]:
        """Where labels stand in each code."""
        more = [] if self.place_of_more is None else [each[labels] for each in self.place_of_more]
        return [self.places(labels), *more]

    def _use_more(self, label_at: Tensor) -> None:
        self.label_at_more, self.place_of_more = label_at, label_at.argsort(dim=1)

    def _load_from_state_dict(self, state: Any, prefix: str, *more: Any) -> None:
        """Take over the orders of labels, whatever they were before."""
        super()._load_from_state_dict(state, prefix, *more)
        if self.label_at_more is not None:
            self._use_more(_checked_orders(self.label_at_more))

    def _by_head(self, outputs: Tensor, n_groups: int) -> tuple[Tensor, ...]:
        """`(n, groups, length)` per head."""
        groups: Tensor = outputs.unflatten(1, (n_groups, -1))
        return tuple(torch.split(groups, self.code.lengths, dim=2))

    def _columns(self, digits: Tensor) -> Tensor:
        """Where digits stand among the outputs of all heads."""
        lengths = torch.tensor([0, *self.code.lengths[:-1]], device=digits.device)
        return digits + lengths.cumsum(0)

    def _code_scores(self, features: Tensor) -> CodeScores:
        outputs = self.linear(features).double()
        outputs = logsigmoid(outputs) if self.loss_name == "bce" else outputs
        heads = self._by_head(outputs, self.n_groups)
        return CodeScores(self.code, heads, self.place_of, self.label_at)

    def _several_codes(self, features: Tensor) -> SeveralCodes:
        heads = self._by_head(self.linear(features).double(), self.n_codes)
        labels = torch.arange(self.n_labels, device=features.device)
        places = torch.stack(self._places_of(labels))
        return SeveralCodes(self.code, heads, places, places.argsort(dim=1))


def _checked_orders(orders: Tensor) -> Tensor:
    expected = torch.arange(orders.shape[1], device=orders.device).expand_as(orders)
    if not torch.equal(orders.sort(dim=1).values, expected):
        raise ParameterError("the orders of labels in these weights are damaged: get them again")
    return orders
