"""FullHead: a vector and a bias for each label."""

import math
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from umpteen.errors import ParameterError
from umpteen.neural.frequencies import frequencies_of, set_bias
from umpteen.neural.head import softmax_or_bce
from umpteen.neural.logits import LogitHead, Scorer
from umpteen.neural.losses import LOSSES
from umpteen.neural.ranks import Ranks
from umpteen.neural.sizes import check_room, check_sizes
from umpteen.neural.split import SplitLogits
from umpteen.neural.targets import Targets


class LinearHead(LogitHead):
    """A head with a vector, and perhaps a bias, for each label; scores are logits."""

    weight: Tensor  # (n_labels, in_features)
    bias: Tensor | None  # (n_labels,)

    def logits(self, features: Tensor) -> Tensor:
        """Return the scores of all labels, `(..., n_labels)`; for batches."""
        return self._scores(self._rows(features)).view(*features.shape[:-1], self.n_labels)

    def _scores(self, rows: Tensor) -> Tensor:
        return linear(rows, self.weight, self.bias)

    @property
    def n_rows(self) -> int:
        return len(self.weight)

    def scorer(self, features: Tensor) -> Scorer:
        def score(first: int, last: int) -> Tensor:
            bias = None if self.bias is None else self.bias[first:last]
            return linear(features, self.weight[first:last], bias)

        return score


class FullHead(LinearHead):
    """A linear layer with an output for each label; the "vanilla" one that others replace.

    `loss` is `"softmax"` for one class per sample, `"bce"` (binary cross-entropy of each label) or
    `"pick_all_labels"` (the sum of softmax losses over the labels of a sample). Training holds the
    logits of a batch, `(batch, n_labels)`; `topk` goes through the labels by blocks. Scores are
    logits: with `"bce"`, above 0 is more likely than not.

    >>> head = FullHead(2, 3)
    >>> _ = head.load_state_dict(
    ...     {"weight": torch.tensor([[1.0, 0], [0, 1], [0, 1]]), "bias": torch.zeros(3)}
    ... )
    >>> labels, scores = head.topk(torch.tensor([[2.0, 5.0]]), k=4)
    >>> labels.tolist(), scores.tolist()
    ([[1, 2, 0]], [[5.0, 5.0, 2.0]])
    """

    bias: Tensor

    def __init__(self, in_features: int, n_labels: int, *, loss: str = "softmax") -> None:
        super().__init__()
        if loss not in LOSSES:
            raise ParameterError(f"loss={loss!r} is not possible: use one of {sorted(LOSSES)}")
        self.in_features, self.n_labels = check_sizes(in_features, n_labels)
        self.loss_name = loss
        check_room(n_labels * in_features)
        reach = in_features**-0.5
        self.weight = nn.Parameter(torch.empty(n_labels, in_features).uniform_(-reach, reach))
        # Before training a label is as likely as one among all.
        rarity = -math.log(n_labels) if loss == "bce" else 0.0
        self.bias = nn.Parameter(torch.full((n_labels,), rarity))

    default_loss = staticmethod(softmax_or_bce)

    def losses(self, features: Tensor, targets: Targets, smoothing: float = 0.0) -> Tensor:
        return LOSSES[self.loss_name](self._scores(features), targets, smoothing)

    def losses_of_share(
        self, features: Tensor, targets: Targets, smoothing: float, ranks: Ranks
    ) -> Tensor:
        """Return what `losses` returns, if each rank has the rows of some labels."""
        if self.loss_name == "softmax":
            targets = Targets.of_classes(targets.classes)
        split = SplitLogits.of_labels(self._scores(features), targets, self.n_labels, ranks)
        if self.loss_name == "bce":
            return split.bce()
        if self.loss_name == "pick_all_labels":
            return split.pick_all_labels(targets.counts)
        return split.softmax(smoothing)

    def best_of_share(self, features: Tensor, k: int, ranks: Ranks) -> tuple[Tensor, Tensor]:
        """Return the best rows of this rank, and their scores."""
        return self.best_of(features, k)

    def init_bias(self, counts: Any, n_samples: int | None = None) -> Self:
        frequencies = frequencies_of(counts, n_samples, self.n_labels)
        set_bias(self.bias, frequencies.logit() if self.loss_name == "bce" else frequencies.log())
        return self
