"""What a pair of a label and a sample costs, by its score.

For a cosine v, SiameseXML takes c * exp(d * (v - 1)) as the probability that the two belong
together, with 0 < c < 1 and d >= 1. It is no sigmoid: even a cosine of 1 leaves a chance of 1 - c
that they do not, so that every loss and every slope is finite. Scores of any size are log-odds.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import softplus


class Likelihood(Protocol):
    """Negative log-likelihoods of pairs, by their scores."""

    def of_positives(self, scores: Tensor) -> Tensor:
        """Return the loss of pairs that belong together."""
        ...

    def of_negatives(self, scores: Tensor) -> Tensor:
        """Return the loss of pairs that do not."""
        ...


@dataclass(frozen=True)
class LogisticLoss:
    """Negative log-likelihoods of pairs whose scores are log-odds.

    >>> LogisticLoss().of_negatives(torch.tensor([0.0, 2.0]))
    tensor([0.6931, 2.1269])
    """

    def of_positives(self, scores: Tensor) -> Tensor:
        """Return ln(1 + exp(-score))."""
        return softplus(-scores)

    def of_negatives(self, scores: Tensor) -> Tensor:
        """Return ln(1 + exp(score))."""
        return softplus(scores)


@dataclass(frozen=True)
class PairLoss:
    """Negative log-likelihoods of pairs.

    >>> loss = PairLoss(c=0.9, d=1.5)
    >>> cosines = torch.tensor([-1.0, 0.0, 1.0])
    >>> loss.of_positives(cosines)
    tensor([3.1054, 1.6054, 0.1054])
    >>> loss.of_negatives(cosines)
    tensor([0.0458, 0.2242, 2.3026])
    """

    c: float
    d: float

    def of_positives(self, cosines: Tensor) -> Tensor:
        """Return ln(1/c) + d (1 - v)."""
        return -torch.log(torch.tensor(self.c)) + self.d * (1 - cosines)

    def of_negatives(self, cosines: Tensor) -> Tensor:
        """Return -ln(1 - c exp(d (v - 1))), where cosines above 1 by rounding count as 1."""
        return -torch.log1p(-self.c * torch.exp(self.d * (cosines.clamp(max=1) - 1)))


def contrastive(
    cosines: Tensor,
    relevant: Tensor,
    negative: Tensor,
    loss: PairLoss,
    n_hardest: int,
    mined: Tensor | None = None,
) -> Tensor:
    """Return the mean over labels of the loss of relevant samples and `n_hardest` negatives.

    `cosines` are (labels, samples), and so are `relevant` and `negative`, which say what a pair
    may count as; a pair may count as neither. `mined` (labels,) are cosines to negatives that were
    found by a search, nan for none: such a one takes the place of the last of the hardest.

    >>> cosines = torch.tensor([[1.0, 0.0, 0.5]])
    >>> relevant = torch.tensor([[True, False, False]])
    >>> contrastive(cosines, relevant, ~relevant, PairLoss(0.9, 1.5), 1)
    tensor(0.6590)
    """
    positives = (loss.of_positives(cosines) * relevant).sum(1)
    negatives = loss.of_negatives(cosines).masked_fill(~negative, 0)  # all others are above 0
    hardest = negatives.topk(min(n_hardest, negatives.shape[1]), dim=1).values
    if mined is not None:
        kept = hardest[:, n_hardest - 1 :].sum(1)
        searched = loss.of_negatives(mined.nan_to_num())
        last = torch.where(mined.isnan(), kept, searched)
        return (positives + hardest[:, : n_hardest - 1].sum(1) + last).mean()
    return (positives + hardest.sum(1)).mean()


def softmax(cosines: Tensor, negative: Tensor, temperature: float) -> Tensor:
    """Return the cross-entropy of each label's own sample against all negatives, both ways.

    The sample of label i is in column i; columns beyond the labels are further negatives.

    >>> cosines = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> softmax(cosines, torch.tensor([[False, True], [True, False]]), 1.0)
    tensor(0.3133)
    """
    n_labels = len(cosines)
    logits = cosines / temperature
    own = logits.diagonal()
    others = logits.masked_fill(~negative, -torch.inf)
    for_labels = torch.logaddexp(own, others.logsumexp(1)) - own
    for_samples = torch.logaddexp(own, others[:, :n_labels].logsumexp(0)) - own
    return (for_labels.mean() + for_samples.mean()) / 2
