"""A last layer that need not be learned."""

from typing import Any, Self

import torch
from torch import Tensor, nn

from umpteen.collapse.frames import fixed_frame
from umpteen.neural import Targets
from umpteen.neural.frequencies import frequencies_of, set_bias
from umpteen.neural.full import LinearHead
from umpteen.neural.losses import pick_all_labels
from umpteen.neural.sizes import check_room, check_sizes
from umpteen.validation import check_number


class EtfHead(LinearHead):
    """A linear layer with fixed rows: a simplex, or directions of small absolute cosines.

    A classifier that is trained to the end has rows that form a simplex equiangular tight frame
    (ETF). Here they form it from the start, and only the features are learned. That needs
    `in_features >= n_labels - 1`; with fewer features the rows are unit vectors of near-equal
    angles (`umpteen.collapse.fixed_frame`), the same for the same `seed`.

    With `learned`, the rows are learned as usual, for comparison. The bias is always learned, as in
    the paper's code; `bias=False` leaves it out. The loss is `pick_all_labels(base, normalize)`.

    The loss also has `feature_penalty` times the mean squared length of the features, and
    `weight_penalty` times the sum of squares of learned rows: the objective of the paper's theorem.
    With these penalties, features have an optimal length; without them, they keep growing, and
    collapse is never complete. (AdamW's `weight_decay` is not such a penalty.)

    >>> head = EtfHead(8, 5)
    >>> head.n_parameters, EtfHead(8, 5, learned=True).n_parameters
    (5, 45)
    >>> labels, scores = head.topk(head.weight[[2, 4]], k=1)
    >>> labels.ravel()
    tensor([2, 4])
    """

    def __init__(
        self,
        in_features: int,
        n_labels: int,
        *,
        learned: bool = False,
        bias: bool = True,
        base: str = "cross_entropy",
        normalize: bool = False,
        feature_penalty: float = 0.0,
        weight_penalty: float = 0.0,
        smoothing: float = 0.1,
        gamma: float = 2.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.in_features, self.n_labels = check_sizes(in_features, n_labels)
        check_room(n_labels * in_features)
        self.loss_name = "pick_all_labels"
        self.feature_penalty = check_number(feature_penalty, "feature_penalty")
        self.weight_penalty = check_number(weight_penalty, "weight_penalty")
        self.objective = pick_all_labels(base, normalize, smoothing=smoothing, gamma=gamma)
        if learned:
            generator = torch.Generator().manual_seed(seed)
            drawn = torch.rand(n_labels, in_features, generator=generator)
            self.weight = nn.Parameter((2 * drawn - 1) / in_features**0.5)  # as nn.Linear
        else:
            frame = torch.from_numpy(fixed_frame(n_labels, in_features, seed))
            self.register_buffer("weight", frame)
        self.bias = nn.Parameter(torch.zeros(n_labels)) if bias else None

    def losses(self, features: Tensor, targets: Targets, smoothing: float = 0.0) -> Tensor:
        """Return the pick-all-labels loss of each sample, and the penalties."""
        losses = self.objective.per_sample(self._scores(features), targets)
        if self.feature_penalty:
            losses = losses + self.feature_penalty * features.square().sum(dim=1)
        if self.weight_penalty and self.weight.requires_grad:
            losses = losses + self.weight_penalty * self.weight.square().sum()
        return losses

    def init_bias(self, counts: Any, n_samples: int | None = None) -> Self:
        """Set the biases to the logarithms of the labels' frequencies; return the head itself.

        Their mean is 0, which means the same to a softmax. With `base="mse"`, there is no softmax,
        and biases do not change.
        """
        if self.bias is not None and self.objective.base != "mse":
            logs = frequencies_of(counts, n_samples, self.n_labels).log()
            set_bias(self.bias, logs - logs.mean())
        return self
