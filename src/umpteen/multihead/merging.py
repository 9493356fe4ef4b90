"""Codes with the best sums of head scores, found without going through all codes.

Codes are compared digit by digit, the first head first. Where only the first `n_codes` are real,
the digits of `n_codes` are the *edge*: a code is real if it is smaller at the first digit that
differs. So the beginnings of real codes are of two kinds: whole ones, which may be continued
by anything, and the edge itself, continued by smaller digits or along the edge.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from umpteen.neural.topk import best_columns, best_positions


@dataclass
class _Beginnings:
    """The best whole beginnings of codes, best first, and behind them the edge's."""

    scores: Tensor  # (n, m + 1)
    ranks: Tensor  # (n, m + 1), by digits; the edge is behind all
    digits: Tensor  # (n, m + 1, heads so far)

    @property
    def n_whole(self) -> int:
        return self.scores.shape[1] - 1


def best_codes(
    head_scores: Sequence[Tensor], k: int, n_codes: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return digits `(n, m, heads)` and scores `(n, m)` of the best m = min(k, n_codes) codes.

    `head_scores` are `(n, length)` per head, and a code's score is the sum of its digits'.
    Equal scores stand by code. A beginning that k others precede cannot lead to the best k, and
    of m beginnings with m digits, pair (i, j) has i * j others before it: so each head adds
    O(k log k) candidates. Exact for sums that the scores' type holds exactly; use float64.
    """
    lengths = [scores.shape[1] for scores in head_scores]
    n_codes = math.prod(lengths) if n_codes is None else n_codes
    edge = edge_digits(n_codes, lengths)
    so_far = _nothing_yet(head_scores[0], n_whole=int(edge is None))
    for head, scores in enumerate(head_scores):
        n_whole = n_codes // math.prod(lengths[head + 1 :])
        digit = None if edge is None else edge[head]
        parents, digits = _candidates(so_far, scores, k, digit or 0)
        so_far = _best(so_far, scores, parents, digits, min(k, n_whole), digit or 0)
    return so_far.digits[:, :-1], so_far.scores[:, :-1]


def log_total(head_scores: Sequence[Tensor], n_codes: int) -> Tensor:
    """Return the log of the sum of exp(score) over the first `n_codes` codes, `(n,)`, exactly."""
    totals = [scores.logsumexp(-1) for scores in head_scores]
    edge = edge_digits(n_codes, [scores.shape[-1] for scores in head_scores])
    if edge is None:
        return torch.stack(totals).sum(0)
    totals_below, along = [], torch.zeros_like(totals[0])
    for head, (scores, digit) in enumerate(zip(head_scores, edge, strict=True)):
        behind = sum(totals[head + 1 :], torch.zeros_like(along))
        if digit:
            totals_below.append(along + scores[..., :digit].logsumexp(-1) + behind)
        along = along + scores[..., digit]
    return torch.stack(totals_below).logsumexp(0)


def edge_digits(n_codes: int, lengths: Sequence[int]) -> list[int] | None:
    """Return the digits of the first code that is not real, or None where all are.

    >>> edge_digits(10, [3, 4]), edge_digits(12, [3, 4])
    ([2, 2], None)
    """
    if n_codes >= math.prod(lengths):
        return None
    return [
        n_codes // math.prod(lengths[head + 1 :]) % length for head, length in enumerate(lengths)
    ]


def _nothing_yet(scores: Tensor, n_whole: int) -> _Beginnings:
    ranks = torch.arange(n_whole + 1, device=scores.device).repeat(len(scores), 1)
    return _Beginnings(scores.new_zeros(ranks.shape), ranks, ranks[:, :, None][:, :, :0])


def _candidates(
    so_far: _Beginnings, scores: Tensor, k: int, edge_digit: int
) -> tuple[Tensor, Tensor]:
    """Which beginning is continued by which digit, both `(n, candidates)`."""
    digits = best_columns(scores, k)[0]
    i, j = _pairs(so_far.n_whole, digits.shape[1], k, scores.device)
    at_edge = best_columns(scores[:, :edge_digit], k)[0]
    parents = [i.expand(len(scores), -1), torch.full_like(at_edge, so_far.n_whole)]
    return torch.cat(parents, dim=1), torch.cat([digits[:, j], at_edge], dim=1)


def _pairs(n_first: int, n_second: int, k: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Ranks (i, j) in two lists, from 0, of which fewer than k other pairs are surely as good."""
    widths = [min(n_second, k // (i + 1)) for i in range(min(n_first, k))]
    i = torch.repeat_interleave(torch.arange(len(widths)), torch.tensor(widths, dtype=torch.int64))
    j = torch.cat([torch.arange(0), *(torch.arange(width) for width in widths)])
    return i.to(device), j.to(device)


def _best(
    so_far: _Beginnings, scores: Tensor, parents: Tensor, digits: Tensor, m: int, edge_digit: int
) -> _Beginnings:
    """The best m of the candidates, and the edge, one head further."""
    sums = so_far.scores.gather(1, parents) + scores.gather(1, digits)
    keys = so_far.ranks.gather(1, parents) * scores.shape[1] + digits
    chosen = best_positions(sums, keys, m)
    ranks = keys.gather(1, chosen).argsort(dim=1).argsort(dim=1)
    parents = _with_last(parents.gather(1, chosen), so_far.n_whole)
    digits = _with_last(digits.gather(1, chosen), edge_digit)
    history = so_far.digits.gather(1, parents[:, :, None].expand(-1, -1, so_far.digits.shape[2]))
    return _Beginnings(
        so_far.scores.gather(1, parents) + scores.gather(1, digits),
        _with_last(ranks, m),
        torch.cat([history, digits[:, :, None]], dim=2),
    )


def _with_last(values: Tensor, last: int) -> Tensor:
    return torch.cat([values, values.new_full((len(values), 1), last)], dim=1)
