"""A last layer that need not be learned."""

import torch
from torch import Tensor, nn

from umpteen.collapse.frames import fixed_frame
from umpteen.collapse.losses import pick_all_labels
from umpteen.errors import FeaturesError
from umpteen.neural import Head, Targets
from umpteen.validation import check_k, check_number

_BLOCK_SCORES = 2**22  # 16 MB


class EtfHead(Head):
    """A linear layer with fixed rows, as far apart as the dimension allows.

    Trained to the end, a classifier's rows form a simplex equiangular tight frame (ETF) anyway;
    so it may be there from the start, and only the features learn. That needs
    `in_features >= n_labels - 1`; with fewer features the rows are unit vectors of near-equal
    angles (`umpteen.collapse.fixed_frame`), the same for the same `seed`.

    With `learned`, the rows are parameters as usual, for comparison. `bias` is always learned, as
    the paper's code does; False leaves it out. The loss is `pick_all_labels(base, normalize)`.

    `feature_penalty` and `weight_penalty` add that times the mean square length of features, and
    times the sum of squares of learned rows: the objective of the paper's theorem. With them,
    features have a best length; without, they grow for ever, and collapse takes as long.
    (AdamW's `weight_decay` is not such a penalty.)

    >>> head = EtfHead(8, 5)
    >>> head.n_parameters, EtfHead(8, 5, learned=True).n_parameters
    (5, 45)
    >>> labels, scores = head.topk(head.weight[[2, 4]], k=1)
    >>> labels.ravel()
    tensor([2, 4])
    """

    weight: Tensor  # (n_labels, in_features)

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
        self.in_features = check_k(in_features, "in_features")
        self.n_labels = check_k(n_labels, "n_labels")
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

    def logits(self, features: Tensor) -> Tensor:
        """Scores of all labels, `(n, n_labels)`; for batches."""
        if features.ndim != 2 or features.shape[1] != self.in_features:
            raise FeaturesError(
                f"features have shape {tuple(features.shape)}; this head was made for "
                f"(n, {self.in_features}): give the encoder as many outputs"
            )
        return nn.functional.linear(features, self.weight, self.bias)

    def loss(self, features: Tensor, targets: Targets) -> Tensor:
        """The pick-all-labels loss, averaged over samples, and the penalties."""
        loss = self.objective(self.logits(features), targets)
        if self.feature_penalty:
            loss = loss + self.feature_penalty * features.square().sum(dim=1).mean()
        if self.weight_penalty and self.weight.requires_grad:
            loss = loss + self.weight_penalty * self.weight.square().sum()
        return loss

    @torch.no_grad()
    def topk(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return the `k` best labels and their scores, computed in blocks of samples."""
        k = self.n_best(k)
        size = max(_BLOCK_SCORES // self.n_labels, 1)
        blocks = [_exact_topk(self.logits(block), k) for block in features.split(size)]
        labels, scores = zip(*blocks, strict=True)  # no samples are one empty block
        return torch.cat(labels), torch.cat(scores)


def _exact_topk(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Best first, equal scores by label id, which `torch.topk` alone does not promise."""
    values, labels = scores.topk(k, dim=1)
    # Where more labels share the last score than were taken, any of them may have been.
    unclear = (scores == values[:, -1:]).sum(dim=1) > (values == values[:, -1:]).sum(dim=1)
    if bool(unclear.any()):
        sorted_values, order = scores[unclear].sort(dim=1, descending=True, stable=True)
        values[unclear], labels[unclear] = sorted_values[:, :k], order[:, :k]
    labels, by_label = labels.sort(dim=1)
    values, by_score = values.gather(1, by_label).sort(dim=1, descending=True, stable=True)
    return labels.gather(1, by_score), values
