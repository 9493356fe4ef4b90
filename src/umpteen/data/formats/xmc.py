"""The Extreme Classification Repository's text: a header `n d L`, then `l1,l2 f:v f:v ...`.

Ids are numbered from 0. Every line is a sample; one without labels begins with a space or with
its first feature. A header of two numbers, `n d`, announces features only: the repository keeps
so the features of labels, and also indicator matrices (read those as `X`).
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

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

HEADER = re.compile(rb"[ \t]*(\d+)[ \t]+(\d+)(?:[ \t]+(\d+))?[ \t\r]*")


def stream(source: Source, batch_size: int | None) -> Iterator[Samples]:
    """Yield samples of the lines, checked against what the header announces."""
    blocks = source.line_blocks()
    header, _, body = next(blocks, b"").partition(b"\n")
    n_rows, n_features, n_labels = _counts(source, header)
    layout = Layout(svmlight=False, end_feature=n_features, end_label=n_labels or 0)
    parsed = parse(source, chain([body] if body else [], blocks), layout, first_line=2)
    for batch in in_batches(_announced(source, parsed, n_rows), batch_size):
        yield join(batch, n_features, n_labels)


def write(samples: Samples, file: BinaryIO) -> None:
    """Write a header and a line per sample; ids are left out."""
    X, Y = matrices_of(samples, "xmc")
    counts = X.shape if Y is None else (*X.shape, Y.shape[1])
    file.write((" ".join(map(str, counts)) + "\n").encode())
    for line in lines_of(X, Y, first_feature=0):
        file.write((line + "\n").encode())


def _counts(source: Source, header: bytes) -> tuple[int, int, int | None]:
    match = HEADER.fullmatch(header)
    if match is None:
        seen = header[:60].decode(errors="replace")
        raise source.error(
            f"the header is {seen!r}; expected three counts: samples, features, labels", 1
        )
    counts = [None if count is None else int(count[:20]) for count in match.groups()]
    n_rows, n_features, n_labels = counts[0] or 0, counts[1] or 0, counts[2]
    if max(n_rows, n_features, n_labels or 0) > MAX_ID:
        raise source.error(f"the header announces more than {MAX_ID:,} rows or columns", 1)
    if n_features == 0:
        raise source.error("the header announces no features; at least one is needed", 1)
    return n_rows, n_features, n_labels


def _announced(source: Source, blocks: Iterable[Rows], n_rows: int) -> Iterator[Rows]:
    """The rows, if they are as many as announced; blank lines may follow."""
    seen = 0
    for rows in blocks:
        expected = min(len(rows), n_rows - seen)
        surplus = rows.slice(expected, len(rows))
        if len(surplus.columns) or len(surplus.labels):
            raise source.error(
                f"a row too many: the header announces {n_rows:,}; correct it if they are right",
                n_rows + 2,
            )
        seen += expected
        yield rows.slice(0, expected)
    if seen < n_rows:
        raise source.error(
            f"the file ends after {seen:,} rows, but the header announces {n_rows:,}; "
            "is it cut short?",
            seen + 1,
        )
