"""Exact top-k of `ProductHead`, in double precision so that sums of scores are not rounded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import torch
from torch import Tensor

from umpteen.multihead.code import LabelCode
from umpteen.multihead.grid import GridRows, best_rows
from umpteen.multihead.merging import best_codes, log_total
from umpteen.neural.topk import best_by_blocks, best_labels

_ROUNDING = 1e-9
_PER_GROUP = 8  # candidates of each group for every label that is asked for
_MAX_SCORES = 2**24  # of candidates at a time

_Found: TypeAlias = tuple[Tensor, Tensor, Tensor]  # labels, scores, and where they are unsure


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
        """Return the scores of places `(n, m)`, or of the same `(m,)` for every sample."""
        digits = self.code.digits(places)
        own = [_entries(scores, digits[..., head]) for head, scores in enumerate(self.heads)]
        sums = sum(own[1:], own[0])  # head by head, as `best_codes` adds them: equal bits
        return sums[:, 0] if self.n_groups == 1 else sums.logsumexp(1)

    def log_total(self) -> Tensor:
        """Return the log of the sum of exp over all labels, `(n,)`."""
        return log_total(self.heads, self.code.n_labels).logsumexp(1)

    def topk(self, k: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the best labels and their log-probabilities, `(n, k)`, equal ones by label."""
        m, n = min(k, self.code.n_labels), len(self.heads[0])
        labels = torch.zeros(n, m, dtype=torch.int64, device=self.heads[0].device)
        scores, unsure = self.heads[0].new_zeros(n, m), labels.new_ones(n, dtype=torch.bool)
        for search in _SEARCHES:  # ever slower, ever surer
            if bool(unsure.any()):
                found = search(self._rows(unsure), m)
                labels[unsure], scores[unsure] = found[:2]
                unsure[unsure.clone()] = found[2]
        return best_labels((scores - self.log_total()[:, None]).to(dtype), labels, k)

    def _among_candidates(self, m: int) -> _Found:
        """The best m among the best few of each group.

        A label that no group has among its best scores at most what the groups' last ones
        have together: where the m-th is better than that, it is exact.
        """
        alone, n = self.n_groups == 1, len(self.heads[0])
        width = min(_PER_GROUP * m if not alone else m + (self.label_at is not None),
                    self.code.n_labels)  # fmt: skip
        flat = [scores.flatten(0, 1) for scores in self.heads]
        digits, sums = best_codes(flat, width, self.code.n_labels)  # (n * groups, width, heads)
        strides = torch.tensor(self.code.strides, device=digits.device)
        places = (digits * strides).sum(2).view(n, self.n_groups * width).sort(dim=1).values
        scores = self.of(places)
        scores[:, 1:].masked_fill_(places.diff(dim=1) == 0, -torch.inf)  # found by several groups
        all_seen = width == self.code.n_labels or (alone and self.label_at is None)
        bound = None if all_seen else sums[:, -1].view(n, self.n_groups).logsumexp(1)
        return self._best(places, scores, m, bound)

    def _on_grid(self, m: int) -> _Found:
        """The best m of the rows of codes that have the greatest scores."""
        grid = best_rows(self.heads, self.code.n_labels, m)
        size = max(1, _MAX_SCORES // (m * grid.n_columns * self.n_groups))
        samples = torch.arange(len(self.heads[0]), device=self.heads[0].device).split(size)
        found = [self._rows(some)._in_rows(grid.of(some), m) for some in samples]
        labels, scores, unsure = zip(*found, strict=True)
        return torch.cat(labels), torch.cat(scores), torch.cat(unsure)

    def _in_rows(self, grid: GridRows, m: int) -> _Found:
        places = grid.places()
        exists = places < self.code.n_labels
        scores = self.of(places * exists).masked_fill(~exists, -torch.inf)
        return self._best(places * exists, scores, m, grid.bound)

    def _best(self, places: Tensor, scores: Tensor, m: int, bound: Tensor | None) -> _Found:
        """The best m of these; unsure where labels outside, up to `bound`, may be as good."""
        labels, scores = best_labels(scores, self._labels(places), m)
        if bound is None:
            return labels, scores, torch.zeros_like(labels[:, 0], dtype=torch.bool)
        return labels, scores, scores[:, -1] <= bound + _ROUNDING * (1 + bound.abs())

    def _by_blocks(self, m: int) -> _Found:
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


_SEARCHES = (CodeScores._among_candidates, CodeScores._on_grid, CodeScores._by_blocks)
