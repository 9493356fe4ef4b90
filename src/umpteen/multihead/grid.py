"""Where the best codes of several groups of heads are, by matrix products.

The first heads' digits together are a row, those of the rest a column, and exp(score) at (row,
column) is the sum, over groups, of what the row and the column have there. So a matrix product
gives the best of every row, and the best m codes are in the m best rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_BLOCK = 2**21  # codes at a time: what the processor's cache holds
_LEAST = 1e-300  # products below are not told apart


@dataclass(frozen=True)
class GridRows:
    """The best rows of each sample, and what no code of any other row exceeds."""

    rows: Tensor  # (n, m)
    bound: Tensor | None  # (n,); None: there is no other row
    n_columns: int

    def of(self, samples: Tensor) -> "GridRows":
        """Return those of some samples."""
        bound = None if self.bound is None else self.bound[samples]
        return GridRows(self.rows[samples], bound, self.n_columns)

    def places(self) -> Tensor:
        """Return the codes of these rows, `(n, m * n_columns)`, real or not."""
        columns = torch.arange(self.n_columns, device=self.rows.device)
        return (self.rows[:, :, None] * self.n_columns + columns).flatten(1)


def best_rows(head_scores: Sequence[Tensor], n_codes: int, m: int) -> GridRows:
    """Return the m best rows; `head_scores` are `(n, groups, length)` per head, in float64."""
    cut = _cut([scores.shape[2] for scores in head_scores])
    nothing = torch.zeros_like(head_scores[0][:, :, :1])
    down, across = _sums(nothing, head_scores[:cut]), _sums(nothing, head_scores[cut:])
    tops = down.amax(2, keepdim=True), across.amax(2, keepdim=True)  # (n, groups, 1)
    most = (tops[0] + tops[1]).amax(1, keepdim=True)
    best = _row_maxima((down + tops[1] - most).exp(), (across - tops[1]).exp(), n_codes)
    values, rows = best.topk(min(m + 1, best.shape[1]), dim=1)
    bound = values[:, m].clamp(min=_LEAST).log() + most[:, 0, 0] if values.shape[1] > m else None
    return GridRows(rows[:, :m], bound, across.shape[2])


def _row_maxima(down: Tensor, across: Tensor, n_codes: int) -> Tensor:
    """Return the greatest product of each row, `(n, rows)`, of `(n, rows, columns)`."""
    n_columns = across.shape[2]
    n_rows = math.ceil(n_codes / n_columns)
    size = max(1, _BLOCK // (len(down) * n_columns))
    best = torch.cat([
        (down[:, :, first : min(first + size, n_rows)].transpose(1, 2) @ across).amax(2)
        for first in range(0, n_rows, size)
    ], dim=1)  # fmt: skip
    n_last = n_codes - (n_rows - 1) * n_columns  # the last row may have fewer real codes
    last = down[:, :, n_rows - 1, None] * across[:, :, :n_last]
    best[:, -1] = last.sum(1).amax(1)
    return best


def _cut(lengths: Sequence[int]) -> int:
    """How many heads make the rows, so that rows and columns together are fewest."""
    return min(
        range(1, len(lengths) + 1),
        key=lambda cut: math.prod(lengths[:cut]) + math.prod(lengths[cut:]),
    )


def _sums(sums: Tensor, head_scores: Sequence[Tensor]) -> Tensor:
    """Return the sum of every choice of digits, in the order of codes: `(n, groups, choices)`."""
    for scores in head_scores:
        sums = (sums[:, :, :, None] + scores[:, :, None]).flatten(2)
    return sums
