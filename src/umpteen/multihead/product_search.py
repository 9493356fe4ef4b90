"""Exact top-k of `ProductHead`, in double precision so that sums of scores are not rounded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from umpteen.multihead.code import LabelCode
from umpteen.multihead.merging import best_codes, log_total
from umpteen.neural.topk import best_by_blocks, best_labels

_ROUNDING = 1e-9


@dataclass(frozen=True)
class CodeScores:
    """Scores of all labels: the log, over groups, of the sum of exp of the heads' sum (Eq. 16)."""

    code: LabelCode
    heads: Sequence[Tensor]  # (n, groups, length) each, float64
    place_of: Tensor | None
    label_at: Tensor | None

    @property
    def n_groups(self) -> int:
        return self.heads[0].shape[1]

    def of(self, places: Tensor) -> Tensor:
        """The scores of places `(n, m)`, or of the same `(m,)` for every sample."""
        digits = self.code.digits(places)
        own = [_entries(scores, digits[..., head]) for head, scores in enumerate(self.heads)]
        sums = sum(own[1:], own[0])  # head by head, as `best_codes` adds them: equal bits
        return sums[:, 0] if self.n_groups == 1 else sums.logsumexp(1)

    def log_total(self) -> Tensor:
        """The log of the sum of exp over all labels, `(n,)`."""
        return log_total(self.heads, self.code.n_labels).logsumexp(1)

    def topk(self, k: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The best labels and their log-probabilities, `(n, k)`, equal ones by label."""
        m = min(k, self.code.n_labels)
        labels, scores, unsure = self._candidates(m, next(widths := self._widths(m)))
        while bool(unsure.any()):
            width = next(widths, None)
            rows = self._rows(unsure)
            found = rows._by_blocks(m) if width is None else rows._candidates(m, width)
            labels[unsure], scores[unsure] = found[:2]
            unsure[unsure.clone()] = found[2]
        return best_labels((scores - self.log_total()[:, None]).to(dtype), labels, k)

    def _widths(self, m: int) -> Iterator[int]:
        """How many candidates to try, one after another."""
        if self.n_groups == 1:
            yield m if self.label_at is None else m + 1
        else:
            yield from (8 * m, 128 * m)

    def _candidates(self, m: int, width: int) -> tuple[Tensor, Tensor, Tensor]:
        """The best m among the best `width` of each group, and where others may be as good.

        A label that no group has among its best scores at most what the groups' last ones
        have together: where the m-th is better than that, it is exact.
        """
        n, width = len(self.heads[0]), min(width, self.code.n_labels)
        flat = [scores.flatten(0, 1) for scores in self.heads]
        digits, sums = best_codes(flat, width, self.code.n_labels)  # (n * groups, width, heads)
        strides = torch.tensor(self.code.strides, device=digits.device)
        places = (digits * strides).sum(2).view(n, self.n_groups * width).sort(dim=1).values
        scores = self.of(places)
        scores[:, 1:].masked_fill_(places.diff(dim=1) == 0, -torch.inf)  # found by several groups
        labels, scores = best_labels(scores, self._labels(places), m)
        bound = sums[:, -1].view(n, self.n_groups).logsumexp(1)
        unsure = scores[:, -1] <= bound + _ROUNDING * (1 + bound.abs())
        all_seen = width == self.code.n_labels or (self.n_groups == 1 and self.label_at is None)
        return labels, scores, unsure & (not all_seen)

    def _by_blocks(self, m: int) -> tuple[Tensor, Tensor, Tensor]:
        """The best m of all labels, whatever ties there are; O(n_labels) per sample."""
        n, device = len(self.heads[0]), self.heads[0].device

        def score(first: int, last: int) -> Tensor:
            return self.of(self._places(torch.arange(first, last, device=device)))

        labels, scores = best_by_blocks(score, n * self.n_groups, self.code.n_labels, m)
        return labels, scores, torch.zeros(n, dtype=torch.bool, device=device)

    def _rows(self, chosen: Tensor) -> Self:
        return replace(self, heads=[scores[chosen] for scores in self.heads])

    def _places(self, labels: Tensor) -> Tensor:
        return labels if self.place_of is None else self.place_of[labels]

    def _labels(self, places: Tensor) -> Tensor:
        return places if self.label_at is None else self.label_at[places]


def _entries(scores: Tensor, digits: Tensor) -> Tensor:
    """Entries `(n, groups, m)` of scores `(n, groups, length)`."""
    if digits.dim() == 1:
        return scores[:, :, digits]
    return scores.gather(2, digits[:, None].expand(-1, scores.shape[1], -1))
