"""The best k labels out of many scores, exactly: equal scores stand by label id."""

from collections.abc import Callable

import torch
from torch import Tensor

_BLOCK_SCORES = 2**22  # scores held at a time
_LEAST_BLOCK = 256


def best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The best `k` columns of each row, and their scores; `k` is at most the number of columns.

    >>> best(torch.tensor([[0.5, 0.9, 0.5, 0.1]]), 2)
    (tensor([[1, 0]]), tensor([[0.9000, 0.5000]]))
    """
    values, columns = scores.topk(k, dim=1)
    crowded = (scores >= values[:, -1:]).sum(dim=1) > k  # torch.topk may take any of equals
    if bool(crowded.any()):
        order = scores[crowded].sort(dim=1, descending=True, stable=True)
        values[crowded], columns[crowded] = order.values[:, :k], order.indices[:, :k]
    columns, by_id = columns.sort(dim=1)
    values, by_score = values.gather(1, by_id).sort(dim=1, descending=True, stable=True)
    return columns.gather(1, by_score), values


def best_by_blocks(
    score: Callable[[int, int], Tensor], n_samples: int, n_labels: int, k: int
) -> tuple[Tensor, Tensor]:
    """As `Head.topk`, where `score(first, last)` gives the scores of those labels, `(n, block)`."""
    size = max(_LEAST_BLOCK, _BLOCK_SCORES // max(1, n_samples))
    labels, values = _block(score, 0, min(size, n_labels), k)
    for first in range(size, n_labels, size):
        more_labels, more_values = _block(score, first, min(first + size, n_labels), k)
        values = torch.cat([values, more_values], dim=1)
        values, order = values.sort(dim=1, descending=True, stable=True)  # lower ids stand first
        values = values[:, :k]
        labels = torch.cat([labels, more_labels], dim=1).gather(1, order[:, :k])
    return padded(labels, values, k)


def padded(labels: Tensor, scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Both with `k` columns: label -1 and score -inf where there are fewer."""
    missing = (0, k - labels.shape[1])
    pad = torch.nn.functional.pad
    return pad(labels, missing, value=-1), pad(scores, missing, value=-torch.inf)


def _block(
    score: Callable[[int, int], Tensor], first: int, last: int, k: int
) -> tuple[Tensor, Tensor]:
    labels, values = best(score(first, last), min(k, last - first))
    return labels + first, values
