"""The best few of many scores, exactly: equal scores stand by their keys, lowest first."""

from collections.abc import Callable

import torch
from torch import Tensor


def best_positions(scores: Tensor, keys: Tensor, k: int) -> Tensor:
    """The columns of the k highest scores of each row, `(n, k)`; both inputs are `(n, m)`, k <= m.

    `torch.topk` alone leaves open which of equal scores it takes. Rows where the last place is
    shared are sorted in full.
    """
    if k == scores.shape[1]:
        return _in_order(scores, keys)
    highest, columns = scores.topk(k + 1, dim=1)
    columns = columns[:, :k]
    order = _in_order(scores.gather(1, columns), keys.gather(1, columns))
    columns = columns.gather(1, order)
    shared = highest[:, k - 1] == highest[:, k] if k else highest.new_zeros(len(scores)).bool()
    if bool(shared.any()):
        columns[shared] = _in_order(scores[shared], keys[shared])[:, :k]
    return columns


def best_columns(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest scores of each row and their columns, equal ones by column."""
    columns = torch.arange(scores.shape[1], device=scores.device).expand_as(scores)
    chosen = best_positions(scores, columns, min(k, scores.shape[1]))
    return scores.gather(1, chosen), chosen


def best_labels(scores: Tensor, labels: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """What `Head.topk` gives, of candidates `(n, m)`; those with score -inf do not count."""
    chosen = best_positions(scores, labels, min(k, scores.shape[1]))
    found_scores, found_labels = scores.gather(1, chosen), labels.gather(1, chosen)
    found_labels = found_labels.masked_fill(found_scores == -torch.inf, -1)
    return filled(found_labels, k, -1), filled(found_scores, k, -torch.inf)


def best_by_blocks(
    score: Callable[[Tensor], Tensor], n_labels: int, k: int, block: int, like: Tensor
) -> tuple[Tensor, Tensor]:
    """What `Head.topk` gives, of all labels: `score` has the scores `(n, m)` of some `(m,)`.

    No more than `block` labels are scored at a time; `like` has n rows and the scores' type.
    """
    labels = torch.zeros(len(like), 0, dtype=torch.int64, device=like.device)
    scores = like.new_zeros(len(like), 0)
    for start in range(0, n_labels, block):
        ids = torch.arange(start, min(start + block, n_labels), device=like.device)
        found, columns = best_columns(score(ids), k)
        candidates = torch.cat([scores, found], dim=1), torch.cat([labels, columns + start], dim=1)
        labels, scores = best_labels(*candidates, min(k, candidates[0].shape[1]))
    return filled(labels, k, -1), filled(scores, k, -torch.inf)


def filled(values: Tensor, k: int, filler: float) -> Tensor:
    """With columns of `filler` up to k."""
    missing = values.new_full((len(values), k - values.shape[1]), filler)
    return torch.cat([values, missing], dim=1)


def _in_order(scores: Tensor, keys: Tensor) -> Tensor:
    by_key = keys.argsort(dim=1)
    by_score = scores.gather(1, by_key).sort(dim=1, descending=True, stable=True).indices
    return by_key.gather(1, by_score)
