"""The best few of many scores, exactly: equal scores stand by label, lowest first."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

_BLOCK_SCORES = 2**22  # scores held at a time
_LEAST_BLOCK = 256


def best_positions(scores: Tensor, keys: Tensor, k: int) -> Tensor:
    """Return the columns of the k highest scores of each row, `(n, k)`, of `(n, m)`, k <= m.

    Equal scores stand by their keys. `torch.topk` alone leaves open which of equal scores it
    takes: rows where the last place is shared are sorted in full.
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
    """Return the columns of the k highest scores of each row, and these; fewer if there are fewer.

    >>> best_columns(torch.tensor([[0.5, 0.9, 0.5, 0.1]]), 2)
    (tensor([[1, 0]]), tensor([[0.9000, 0.5000]]))
    """
    columns = torch.arange(scores.shape[1], device=scores.device).expand_as(scores)
    chosen = best_positions(scores, columns, min(k, scores.shape[1]))
    return chosen, scores.gather(1, chosen)


def best_labels(scores: Tensor, labels: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return what `Head.topk` gives, of candidates `(n, m)`; those with score -inf do not count."""
    chosen = best_positions(scores, labels, min(k, scores.shape[1]))
    found_scores, found_labels = scores.gather(1, chosen), labels.gather(1, chosen)
    return padded(found_labels.masked_fill(found_scores == -torch.inf, -1), found_scores, k)


def best_by_blocks(
    score: Callable[[int, int], Tensor], n_samples: int, n_labels: int, k: int
) -> tuple[Tensor, Tensor]:
    """Return what `Head.topk` gives; `score(first, last)` are scores of labels, `(n, block)`."""
    blocks = label_blocks(n_samples, n_labels)
    labels, scores = best_columns(score(*next(blocks)), k)
    for first, last in blocks:
        columns, more = best_columns(score(first, last), k)
        labels = torch.cat([labels, columns + first], dim=1)
        labels, scores = best_labels(
            torch.cat([scores, more], dim=1), labels, min(k, labels.shape[1])
        )
    return padded(labels, scores, k)


def label_blocks(n_samples: int, n_labels: int) -> Iterator[tuple[int, int]]:
    """Yield the first label of each block, and where it ends."""
    size = max(_LEAST_BLOCK, _BLOCK_SCORES // max(1, n_samples))
    for first in range(0, n_labels, size):
        yield first, min(first + size, n_labels)


def padded(labels: Tensor, scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return both with `k` columns: label -1 and score -inf where there are fewer."""
    missing = (0, k - labels.shape[1])
    pad = torch.nn.functional.pad
    return pad(labels, missing, value=-1), pad(scores, missing, value=-torch.inf)


def _in_order(scores: Tensor, keys: Tensor) -> Tensor:
    by_key = keys.argsort(dim=1)
    by_score = scores.gather(1, by_key).sort(dim=1, descending=True, stable=True).indices
    return by_key.gather(1, by_score)
