"""Exact top-k where a label's score is the sum of its scores under several codes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import torch
from torch import Tensor

from umpteen.multihead.code import LabelCode
from umpteen.multihead.merging import best_codes, log_total
from umpteen.neural.topk import best_by_blocks, best_labels

_ROUNDING = 1e-9
_WIDTHS = (8, 64)  # candidates of each code for every label that is asked for

_Found: TypeAlias = tuple[Tensor, Tensor, Tensor]  # labels, scores, and where they are unsure


@dataclass(frozen=True)
class SeveralCodes:
    """Scores of all labels: the mean of the codes' log-probabilities.

    Codes have the same heads, and label y stands at `places[c, y]` of code c.
    """

    code: LabelCode
    heads: Sequence[Tensor]  # (n, codes, length) each, float64
    places: Tensor  # (codes, n_labels)
    labels: Tensor  # (codes, n_labels): its inverse

    @property
    def n_codes(self) -> int:
        return len(self.places)

    def of(self, labels: Tensor) -> Tensor:
        """Return the scores of labels `(n, m)`, or of the same `(m,)` for every sample.

        Codes are added up one by one, so that a label's score has the same bits however it was
        found.
        """
        total = torch.zeros((), dtype=torch.float64, device=labels.device)
        for code in range(self.n_codes):
            digits = self.code.digits(self.places[code][labels])
            for head, scores in enumerate(self.heads):
                total = total + _entries(scores[:, code], digits[..., head])
        return total

    def topk(self, k: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the best labels and their scores, `(n, k)`, equal ones by label."""
        m, n = min(k, self.code.n_labels), len(self.heads[0])
        labels = torch.zeros(n, m, dtype=torch.int64, device=self.places.device)
        scores, unsure = self.heads[0].new_zeros(n, m), labels.new_ones(n, dtype=torch.bool)
        for width in (*_WIDTHS, None):  # ever slower, ever surer
            if bool(unsure.any()):
                some = self._rows(unsure)
                found = some._by_blocks(m) if width is None else some._candidates(m, width)
                labels[unsure], scores[unsure] = found[:2]
                unsure[unsure.clone()] = found[2]
        mean = (scores - self.log_total()[:, None]) / self.n_codes
        return best_labels(mean.to(dtype), labels, k)

    def log_total(self) -> Tensor:
        """Return the sum of the codes' own normalizers, over labels that exist: `(n,)`."""
        return log_total(self.heads, self.code.n_labels).sum(1)

    def _candidates(self, m: int, width: int) -> _Found:
        """The best m among the best few of each code (the threshold algorithm of Fagin et al.).

        A label that no code has among its best scores at most what the codes' last ones have
        together: where the m-th is better than that, it is exact.
        """
        n, size = len(self.heads[0]), min(width * m, self.code.n_labels)
        flat = [scores.flatten(0, 1) for scores in self.heads]
        digits, sums = best_codes(flat, size, self.code.n_labels)  # (n * codes, size, heads)
        strides = torch.tensor(self.code.strides, device=digits.device)
        places = (digits * strides).sum(2).view(n, self.n_codes, size)
        labels = torch.stack([each[places[:, c]] for c, each in enumerate(self.labels)], dim=1)
        labels = labels.flatten(1).sort(dim=1).values
        scores = self.of(labels)
        scores[:, 1:].masked_fill_(labels.diff(dim=1) == 0, -torch.inf)  # found by several codes
        labels, scores = best_labels(scores, labels, m)
        if size == self.code.n_labels:
            return labels, scores, torch.zeros_like(labels[:, 0], dtype=torch.bool)
        bound = sums[:, -1].view(n, self.n_codes).sum(1)
        return labels, scores, scores[:, -1] <= bound + _ROUNDING * (1 + bound.abs())

    def _by_blocks(self, m: int) -> _Found:
        """The best m of all labels; O(n_labels) per sample."""
        n, device = len(self.heads[0]), self.places.device

        def score(first: int, last: int) -> Tensor:
            return self.of(torch.arange(first, last, device=device))

        labels, scores = best_by_blocks(score, n * self.n_codes, self.code.n_labels, m)
        return labels, scores, torch.zeros(n, dtype=torch.bool, device=device)

    def _rows(self, chosen: Tensor) -> Self:
        return replace(self, heads=[scores[chosen] for scores in self.heads])


def _entries(scores: Tensor, digits: Tensor) -> Tensor:
    """Entries `(n, m)` of scores `(n, length)`."""
    return scores[:, digits] if digits.dim() == 1 else scores.gather(1, digits)
