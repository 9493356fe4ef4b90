"""LogitHead: a head whose scores are logits of all labels, and what probabilities these mean."""

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from umpteen.neural.head import Head
from umpteen.neural.losses import precise
from umpteen.neural.topk import best_by_blocks, best_labels, label_blocks

Scorer = Callable[[int, int], Tensor]


class LogitHead(Head):
    """A head that scores each label by a row of its own.

    With `loss="bce"`, each label has the probability sigmoid(logit). With all other losses, labels
    share a probability of 1, by a softmax over all of them.
    """

    @abstractmethod
    def scorer(self, features: Tensor) -> Scorer:
        """Return a function that scores the labels from `first` to before `last`, `(n, block)`."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Return the number of labels whose rows are here."""

    def best_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        return best_by_blocks(self.scorer(features), len(features), self.n_rows, k)

    def best_log_proba_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Return what `best_of` returns; the softmax is summed up in the same pass."""
        if self.loss_name == "bce":
            labels, scores = self.best_of(features, k)
            return labels, logsigmoid(precise(scores))
        totals = Totals(self.scorer(features), len(features), features.device)
        labels, scores = best_by_blocks(totals.score, len(features), self.n_rows, k)
        return best_labels(precise(scores) - totals.sums[:, None], labels, k)

    def log_proba_of(self, features: Tensor, labels: Tensor) -> Tensor:
        totals = Totals(self.scorer(features), len(features), features.device)
        found = torch.zeros(labels.shape, dtype=totals.sums.dtype, device=labels.device)
        for first, last in label_blocks(len(features), self.n_rows):
            scores = precise(totals.score(first, last))
            here = (labels >= first) & (labels < last)
            chosen = scores.gather(1, (labels - first).clamp(0, last - first - 1))
            found = torch.where(here, chosen, found)
        return logsigmoid(found) if self.loss_name == "bce" else found - totals.sums[:, None]


class Totals:
    """Scores by blocks, and the logarithm of the sum of their exponentials so far, `(n,)`."""

    def __init__(self, scorer: Scorer, n_samples: int, device: torch.device) -> None:
        self.scorer = scorer
        self.sums = torch.full((n_samples,), -torch.inf, device=device)

    def score(self, first: int, last: int) -> Tensor:
        """Return the scores of a block, which must be asked for once."""
        scores = self.scorer(first, last)
        self.sums = torch.logaddexp(self.sums, precise(scores).logsumexp(1))
        return scores
