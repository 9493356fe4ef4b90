"""The forms in which labels of a batch may be given, all made into `Targets`."""

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from scipy.sparse import csr_matrix, issparse
from torch import Tensor

from umpteen.errors import LabelsError, LabelsShapeError
from umpteen.neural.targets import Targets


def as_targets(
    labels: Any, leading: Sequence[int], n_labels: int, ignore_index: int, device: torch.device
) -> Targets:
    """Return the targets of samples whose features have the shape `(*leading, in_features)`."""
    if isinstance(labels, Targets):
        targets = labels
    elif issparse(labels):
        targets = _of_scipy(labels, n_labels, device)
    else:
        targets = _of_tensor(_tensor(labels, device), leading, n_labels, ignore_index)
    if len(targets) != prod(leading):
        raise LabelsError(
            f"features have {prod(leading):,} samples but labels have {len(targets):,}: pass those "
            "of the same batch"
        )
    check_range(targets.labels, n_labels)
    return targets


def _tensor(labels: Any, device: torch.device) -> Tensor:
    try:
        return torch.as_tensor(labels, device=device)
    except (TypeError, ValueError, RuntimeError) as problem:
        if isinstance(labels, Tensor):
            raise
        raise LabelsError(
            f"labels are {labels!r:.60}, which is no tensor ({problem!s:.80}): give label ids, "
            "lists of several ids filled up to one length with ignore_index, or an indicator"
        ) from None


def check_range(labels: Any, n_labels: int) -> None:
    """Refuse labels, an array or a tensor, that are not from 0 to `n_labels - 1`.

    In a graph that is being compiled nothing can be refused.
    """
    if 0 in labels.shape or torch.compiler.is_compiling():
        return
    least, most = int(labels.min()), int(labels.max())
    if least < 0 or most >= n_labels:
        raise LabelsError(
            f"labels run from 0 to {n_labels - 1:,} here, but {least if least < 0 else most:,} "
            "was given: number them from 0, or make the head for more labels"
        )


def _of_scipy(labels: Any, n_labels: int, device: torch.device) -> Targets:
    _check_width(labels.shape[-1], n_labels)
    labels = csr_matrix(labels, copy=True)
    labels.sum_duplicates()
    labels.eliminate_zeros()
    _check_indicator(torch.from_numpy(labels.data))
    return Targets.of(labels, device)


def _of_tensor(labels: Tensor, leading: Sequence[int], n_labels: int, ignore_index: int) -> Targets:
    shape, expected = tuple(labels.shape), tuple(leading)
    is_ids = not (labels.is_floating_point() or labels.dtype == torch.bool)
    if labels.layout != torch.strided:
        _check_width(shape[-1], n_labels)
        if len(shape) != 2:
            raise LabelsShapeError(
                f"sparse labels have shape {shape}; expected (n, {n_labels:,}), with a row for "
                "each sample of the batch"
            )
        return _of_sparse(labels)
    if shape == expected and is_ids:
        return Targets.of_classes(labels.reshape(-1).long(), ignore_index)
    if shape[:-1] != expected or not shape:
        raise LabelsShapeError(
            f"labels have shape {shape} and type {labels.dtype}, but features have the leading "
            f"shape {expected}: give whole numbers {expected}, one class each; whole numbers "
            f"{(*expected, 'm')}, filled up with ignore_index={ignore_index}; or a boolean or "
            f"float indicator {(*expected, n_labels)}"
        )
    flat = labels.reshape(prod(leading), shape[-1])
    if not is_ids:
        _check_width(shape[-1], n_labels)
        _check_indicator(flat)
        return Targets.of_indicator(flat)
    if not torch.compiler.is_compiling():
        _check_not_an_indicator(flat, n_labels)
    return Targets.of_padded(flat.long(), ignore_index)


def _of_sparse(labels: Tensor) -> Targets:
    """Of a sparse indicator in any of PyTorch's layouts."""
    labels = labels.to_sparse_coo().coalesce()
    _check_indicator(labels.values())
    rows, columns = labels.indices()[:, labels.values() != 0]
    counts = torch.bincount(rows, minlength=labels.shape[0])
    return Targets(torch.nn.functional.pad(counts.cumsum(0), (1, 0)), columns)


def _check_width(width: int, n_labels: int) -> None:
    if width != n_labels:
        raise LabelsShapeError(
            f"labels have a column for each of {width:,} labels, but this head was made for "
            f"{n_labels:,}: give an indicator (n, {n_labels:,}), or label ids"
        )


def _check_indicator(values: Tensor) -> None:
    """Refuse NaN, negative numbers and shares: each would count as a label."""
    if not values.is_floating_point() or torch.compiler.is_compiling():
        return
    if not bool(((values == 0) | (values >= 1)).all()):
        raise LabelsError(
            "the indicator of labels has values other than 0 and 1: shares of labels (soft labels) "
            "cannot be learned; pass labels > 0.5, or whatever makes a label relevant"
        )


def _check_not_an_indicator(labels: Tensor, n_labels: int) -> None:
    looks_so = labels.shape[1] == n_labels > 2 and bool(((labels == 0) | (labels == 1)).all())
    if looks_so:
        raise LabelsError(
            f"labels are whole numbers 0 and 1 of shape {tuple(labels.shape)}, which looks like an "
            "indicator, but whole numbers are label ids: pass labels.bool()"
        )
