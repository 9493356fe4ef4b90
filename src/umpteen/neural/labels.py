"""The forms in which labels of a batch may be given, all made into `Targets`."""

from collections.abc import Sequence
from math import prod
from numbers import Integral
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch import Tensor

from umpteen.errors import LabelsError, LabelsShapeError, ParameterError
from umpteen.neural.targets import Targets
from umpteen.validation.arrays import as_float32, canonical_csr

_MORE = "make the head for more labels"
_BEYOND = 2**63


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
    check_range(targets.labels, n_labels, "pass ignore_index= if it means no label")
    return targets


def _tensor(labels: Any, device: torch.device) -> Tensor:
    if isinstance(labels, Tensor) and labels.is_nested:
        raise LabelsError(
            "labels are a nested tensor: fill them up to one length with ignore_index, as "
            "torch.nested.to_padded_tensor does"
        )
    if isinstance(labels, Tensor):
        check_place(labels, None, "labels", LabelsError)
    if isinstance(labels, np.ma.MaskedArray) and np.ma.is_masked(labels):
        raise LabelsError(
            "labels are a masked array with missing values: pass labels.filled(-100), or another "
            "number, which is ignore_index then"
        )
    try:
        return torch.as_tensor(labels, device=device)
    except (TypeError, ValueError, RuntimeError) as problem:
        if isinstance(labels, Tensor):
            raise
        raise LabelsError(
            f"labels are {labels!r:.60}, which is no tensor ({problem!s:.80}): give label ids, "
            "lists of several ids filled up to one length with ignore_index, or an indicator"
        ) from None


def asked_labels(
    labels: Any, leading: Sequence[int], n_labels: int, device: torch.device
) -> Tensor:
    """Return the ids of labels to score as a tensor `(*leading)` or `(*leading, m)`."""
    asked, expected = _tensor(labels, device), tuple(leading)
    if asked.layout != torch.strided:
        raise LabelsError("labels are a sparse tensor: pass the ids of the labels asked for")
    if expected not in (tuple(asked.shape), tuple(asked.shape[:-1])) or not _are_ids(asked):
        raise LabelsShapeError(
            f"labels have shape {tuple(asked.shape)} and type {asked.dtype}, but features have the "
            f"leading shape {expected}: give integers of shape {expected}, one label for each "
            f"sample, or of shape {_with(expected, 'm')}, several labels for each"
        )
    asked = asked.long()  # PyTorch does not compare large numbers without a sign
    check_range(asked, n_labels)
    return asked


def check_place(
    tensor: Tensor, device: torch.device | None, name: str, error: type[ValueError]
) -> None:
    """Refuse tensors without numbers, and those on another device than the weights of a head."""
    if tensor.device.type == "meta":
        raise error(
            f"{name} are on the device 'meta', which holds no numbers: make them on the device of "
            "the head"
        )
    if device is not None and tensor.device != device:
        advice = (
            "load weights into it with assign=True, or use head.to_empty(device=...)"
            if device.type == "meta"
            else f"pass {name}.to({str(device)!r}), or move the head"
        )
        raise error(f"{name} are on {tensor.device}, but this head is on {device}: {advice}")


def check_ignored(ignore_index: Any) -> None:
    """Refuse what is no label id, such as None."""
    if isinstance(ignore_index, bool) or not isinstance(ignore_index, Integral):
        raise ParameterError(
            f"ignore_index={ignore_index!r} is not possible: use a whole number that is no label, "
            "such as -100"
        )
    if not -_BEYOND <= int(ignore_index) < _BEYOND:
        raise ParameterError(f"ignore_index={ignore_index} is not possible: it exceeds 64 bits")


def check_range(labels: Any, n_labels: int, below: str = _MORE) -> None:
    """Refuse labels, an array or a tensor, that are not from 0 to `n_labels - 1`.

    `below` is advice for negative labels. In a graph that is being compiled nothing can be refused.
    """
    if 0 in labels.shape or torch.compiler.is_compiling():
        return
    least, most = int(labels.min()), int(labels.max())
    if least < 0 or most >= n_labels:
        raise LabelsError(
            f"labels run from 0 to {n_labels - 1:,} here, but {least if least < 0 else most:,} "
            f"was given: number them from 0, or {below if least < 0 else _MORE}"
        )


def _of_scipy(labels: Any, n_labels: int, device: torch.device) -> Targets:
    _check_width(labels.shape[-1], n_labels)
    relevant = canonical_csr(labels, as_float32, "the indicator of labels", LabelsError).copy()
    relevant.eliminate_zeros()
    _check_indicator(torch.from_numpy(relevant.data))
    return Targets.of(relevant, device)


def _of_tensor(labels: Tensor, leading: Sequence[int], n_labels: int, ignore_index: int) -> Targets:
    shape, expected = tuple(labels.shape), tuple(leading)
    is_ids = _are_ids(labels)
    if labels.layout != torch.strided:
        _check_width(shape[-1], n_labels)
        if len(shape) != 2 or labels.dense_dim():
            raise LabelsShapeError(
                f"sparse labels have shape {shape} and {labels.dense_dim()} dense dimensions; "
                f"expected (n, {n_labels:,}) and none, with a row for each sample of the batch"
            )
        return _of_sparse(labels)
    if shape == expected and is_ids:
        return Targets.of_classes(labels.reshape(-1).long(), ignore_index)
    if shape[:-1] != expected or not shape:
        raise LabelsShapeError(
            f"labels have shape {shape} and type {labels.dtype}, but features have the leading "
            f"shape {expected}: give whole numbers {expected}, one class each; whole numbers "
            f"{_with(expected, 'm')}, filled up with ignore_index={ignore_index}; or a boolean or "
            f"float indicator {_with(expected, n_labels)}"
        )
    flat = labels.reshape(prod(leading), shape[-1])
    if not is_ids:
        _check_width(shape[-1], n_labels)
        _check_indicator(flat)
        return Targets.of_indicator(flat)
    if not torch.compiler.is_compiling():
        _check_not_an_indicator(flat, n_labels)
    return Targets.of_padded(flat.long(), ignore_index)


def _are_ids(labels: Tensor) -> bool:
    return not (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool)


def _with(leading: tuple[int, ...], last: int | str) -> str:
    """Return a shape in words, such as (4, m)."""
    return f"({', '.join(map(str, (*leading, last)))})"


def _of_sparse(labels: Tensor) -> Targets:
    """Return the targets of a sparse indicator in any of PyTorch's layouts."""
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
    if values.dtype == torch.bool or torch.compiler.is_compiling():
        return
    if values.is_complex() or not bool(((values == 0) | (values >= 1)).all()):
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
