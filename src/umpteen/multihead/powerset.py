"""Sets of labels as classes: each head chooses a subset of a few labels (the paper's Table 1)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from umpteen.errors import ParameterError
from umpteen.multihead.merging import best_codes
from umpteen.neural import Targets
from umpteen.neural.frequencies import frequencies_of, set_bias
from umpteen.neural.head import checked_scores
from umpteen.neural.losses import cross_entropy
from umpteen.neural.settled import SettledHead
from umpteen.neural.sizes import check_room, check_sizes
from umpteen.neural.topk import best_labels
from umpteen.storage import Sizes, refusals, storable
from umpteen.validation import check_k

_MAX_LABELS_PER_HEAD = 16


@storable
@dataclass(frozen=True, eq=False)
class PowersetCode:
    """One digit per `labels_per_head` consecutive labels: which of them are in the set, in bits.

    >>> code = PowersetCode(20, 4)
    >>> code.lengths
    [16, 16, 16, 16, 16]
    >>> code.encode(csr_matrix(np.eye(20, dtype=int)[[0]] + np.eye(20, dtype=int)[[5]]))
    array([[1, 2, 0, 0, 0]])
    """

    n_labels: int
    labels_per_head: int = 4

    def __post_init__(self) -> None:
        check_k(self.n_labels, "n_labels")
        if check_k(self.labels_per_head, "labels_per_head") > _MAX_LABELS_PER_HEAD:
            raise ParameterError(
                f"labels_per_head={self.labels_per_head} would need heads of "
                f"2**{self.labels_per_head} outputs: use {_MAX_LABELS_PER_HEAD} or fewer"
            )

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: what the constructor would refuse."""
        yield from refusals(self)

    @property
    def n_heads(self) -> int:
        return math.ceil(self.n_labels / self.labels_per_head)

    @property
    def lengths(self) -> list[int]:
        """Return how many subsets each head chooses from; the last may have fewer labels."""
        starts = range(0, self.n_labels, self.labels_per_head)
        return [2 ** min(self.labels_per_head, self.n_labels - start) for start in starts]

    def encode(self, Y: csr_matrix) -> npt.NDArray[np.int64]:
        """Return the digits `(n, heads)` of sets of labels, the rows of an indicator."""
        return self.digits(Targets.of(Y)).numpy()

    def digits(self, targets: Targets) -> Tensor:
        """Return the digits `(n, heads)` of the samples' sets."""
        labels = targets.labels
        digits = labels.new_zeros(len(targets) * self.n_heads)
        cells = targets.rows * self.n_heads + labels // self.labels_per_head
        digits.index_add_(0, cells, 2 ** (labels % self.labels_per_head))
        return digits.view(-1, self.n_heads)

    def members(self, digits: Tensor) -> Tensor:
        """Return which labels the sets of digits `(..., heads)` have, as `(..., n_labels)`."""
        bits = torch.arange(self.labels_per_head, device=digits.device)
        return (digits[..., None] >> bits & 1).bool().flatten(-2)[..., : self.n_labels]


class PowersetHead(SettledHead):
    """Predicts the set of labels as a whole, by heads that choose subsets of a few labels each.

    Labels of one head may depend on each other, which thresholds per label cannot express. Any
    number of labels per sample is possible, none too. `best_sets` has the likeliest sets, of
    all `2 ** n_labels`; `topk` ranks labels by the log of their probability to be in the set.

    >>> PowersetHead(8, 80, labels_per_head=5).n_parameters == 16 * 32 * (8 + 1)
    True
    """

    predicts_sets = True

    def __init__(self, in_features: int, n_labels: int, *, labels_per_head: int = 4) -> None:
        super().__init__()
        self.in_features, self.n_labels = check_sizes(in_features, n_labels)
        self.code = PowersetCode(n_labels, labels_per_head)
        check_room(in_features * 2 ** min(labels_per_head, n_labels) * self.code.n_heads)
        self.loss_name = "powerset"
        self.linear = nn.Linear(in_features, sum(self.code.lengths))

    def settings(self) -> dict[str, Any]:
        return {"n_labels": self.n_labels, "labels_per_head": self.code.labels_per_head}

    def losses(self, features: Tensor, targets: Targets, smoothing: float = 0.0) -> Tensor:
        """Return -log p(set) of each sample."""
        digits = self.code.digits(targets)
        heads = self.linear(features).split(self.code.lengths, dim=1)
        losses = [cross_entropy(logits, digits[:, h]) for h, logits in enumerate(heads)]
        return torch.stack(losses).sum(0)

    def init_bias(self, counts: Any, n_samples: int | None = None) -> Self:
        """Set the biases so that sets are as likely as if labels were independent."""
        frequencies = frequencies_of(counts, n_samples, self.n_labels)
        starts = []
        for own in frequencies.split(self.code.labels_per_head):
            subsets = torch.arange(2 ** len(own))[:, None] >> torch.arange(len(own)) & 1
            starts.append(subsets.double() @ own.logit())  # relative to the empty set
        set_bias(self.linear.bias, torch.cat(starts))
        return self

    def best_of(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        scores = torch.cat([self._marginals(head) for head in self._log_proba(features)], dim=1)
        labels = torch.arange(self.n_labels, device=scores.device).expand_as(scores)
        return best_labels(scores.to(features.dtype), labels, k)

    @torch.no_grad()
    def best_set(self, features: Tensor) -> Tensor:
        """Return the likeliest set of each sample, as booleans `(n, n_labels)`, for `predict`."""
        heads = self.linear(self._rows(features)).split(self.code.lengths, dim=1)
        return self.code.members(torch.stack([logits.argmax(1) for logits in heads], dim=1))

    @torch.no_grad()
    def best_sets(self, features: Tensor, k: int = 1) -> tuple[Tensor, Tensor]:
        """Return the likeliest sets, booleans `(n, m, n_labels)`, and their log-probabilities.

        m is k, or the number of sets if that is smaller. Exact, as in `ProductHead.topk`; equal
        ones by their digits.
        """
        digits, scores = best_codes(self._log_proba(self._rows(features)), check_k(k))
        return self.code.members(digits), checked_scores(scores.to(features.dtype))

    def _log_proba(self, features: Tensor) -> list[Tensor]:
        heads = self.linear(features).double().split(self.code.lengths, dim=1)
        return [logits.log_softmax(1) for logits in heads]

    def _marginals(self, log_proba: Tensor) -> Tensor:
        """The log-probability of each label of a head, `(n, labels of the head)`."""
        n_labels = log_proba.shape[1].bit_length() - 1
        subsets = torch.arange(log_proba.shape[1], device=log_proba.device)
        has = [log_proba[:, (subsets >> bit & 1).bool()].logsumexp(1) for bit in range(n_labels)]
        return torch.stack(has, dim=1)
