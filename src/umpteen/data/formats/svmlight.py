"""svmlight / libsvm, multi-label: `l1,l2 f:v f:v ... # comment`, without a header.

Blank lines and comments are no samples; `qid:` is ignored. As there is no header, the
numbers of features and labels are those seen, unless given.

Features may be numbered from 0 or from 1. As in scikit-learn, `zero_based="auto"` takes them to
be numbered from 1 if no 0 occurs in the whole file. We write them numbered from 1, as libsvm
does, so that "auto" always reads them back as they were.
"""

from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import BinaryIO, Literal, NamedTuple

import numpy as np

from umpteen.data.formats.matrices import (
    MAX_ID,
    Layout,
    Rows,
    in_batches,
    join,
    lines_of,
    matrices_of,
    parse,
)
from umpteen.data.formats.source import Source
from umpteen.data.samples import Samples
from umpteen.errors import ParameterError


class _Extent(NamedTuple):
    """The smallest and largest ids; -1 where there are none."""

    first_feature: int = -1
    last_feature: int = -1
    last_label: int = -1


def stream(
    source: Source,
    batch_size: int | None,
    zero_based: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    n_labels: int | None = None,
) -> Iterator[Samples]:
    """Yield samples of the lines.

    In batches, what is not given (`zero_based`, `n_features`, `n_labels`) is found by a first
    look at the whole file. A file without any label has no `Y`, unless `n_labels` is given.
    """
    _check_options(zero_based, n_features, n_labels)
    layout = _layout(zero_based, n_features, n_labels)
    extent = None
    if batch_size is not None and (zero_based == "auto" or n_features is None or n_labels is None):
        with source.again() as first_look:
            extent = _extent(parse(first_look, first_look.line_blocks(), layout, 1))
    for batch in in_batches(parse(source, source.line_blocks(), layout, 1), batch_size):
        seen = extent or _extent(batch)
        shift = int(zero_based == "auto" and seen.first_feature > 0)
        width = n_features or max(1, seen.last_feature + 1 - shift)
        if seen.last_feature - shift >= width:
            raise source.error(
                f"features go from 0 to {seen.last_feature}, too many for n_features={width}"
            )
        height = n_labels if n_labels is not None or seen.last_label < 0 else seen.last_label + 1
        yield join([_shifted(rows, shift) for rows in batch], width, height)


def write(samples: Samples, file: BinaryIO, zero_based: bool = False) -> None:
    """Write a line per sample; ids, and columns beyond the last one used, are left out."""
    first_feature = int(not zero_based)
    for line in lines_of(*matrices_of(samples, "svmlight"), first_feature):
        # A blank line would be no sample, so an empty one gets a zero.
        file.write((f" {first_feature}:0\n" if line.isspace() else line + "\n").encode())


def _layout(
    zero_based: bool | Literal["auto"], n_features: int | None, n_labels: int | None
) -> Layout:
    first_feature = int(zero_based is False)
    room = int(zero_based is not True)
    end_feature = MAX_ID if n_features is None else n_features + room
    return Layout(True, first_feature, end_feature, MAX_ID if n_labels is None else n_labels)


def _extent(blocks: Iterable[Rows]) -> _Extent:
    extent = _Extent()
    for rows in blocks:
        if len(rows.columns):
            first = int(rows.columns.min())
            if extent.first_feature >= 0:
                first = min(first, extent.first_feature)
            last = max(extent.last_feature, int(rows.columns.max()))
            extent = _Extent(first, last, extent.last_label)
        if len(rows.labels):
            extent = extent._replace(last_label=max(extent.last_label, int(rows.labels.max())))
    return extent


def _shifted(rows: Rows, shift: int) -> Rows:
    if shift:
        np.subtract(rows.columns, shift, out=rows.columns)
    return rows


def _check_options(zero_based: object, n_features: int | None, n_labels: int | None) -> None:
    if zero_based not in (True, False, "auto"):
        raise ParameterError(f"zero_based={zero_based!r}; expected True, False or 'auto'")
    for name, count, least in (("n_features", n_features, 1), ("n_labels", n_labels, 0)):
        if count is None:
            continue
        if not isinstance(count, Integral) or not least <= count < MAX_ID:
            raise ParameterError(f"{name}={count!r}; expected {least} ... {MAX_ID - 1:,}, or None")
