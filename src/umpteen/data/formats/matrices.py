"""What the two matrix formats share: lines of `label,label feature:value feature:value`.

A file is read in blocks of whole lines. A kernel turns each into arrays of its own, several
blocks side by side, and the arrays are joined at the end.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy.sparse import csr_matrix

from umpteen import parallel
from umpteen.data.formats.rows import Rows
from umpteen.data.formats.source import Source
from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError
from umpteen.kernels import text_parsing
from umpteen.validation import check_features, check_labels

MAX_ID = 2**31 - 1


@dataclass(frozen=True)
class Layout:
    """What ids may be: features from `first_feature` to before `end_feature`, labels from 0."""

    svmlight: bool
    first_feature: int = 0
    end_feature: int = MAX_ID
    end_label: int = MAX_ID


def parse(
    source: Source, blocks: Iterable[bytes], layout: Layout, first_line: int
) -> Iterator[Rows]:
    """Yield the rows of each block of lines; the first line has the number `first_line`."""
    line = first_line
    remaining = iter(blocks)
    while group := list(islice(remaining, 2 * parallel.n_threads(-1))):
        results = parallel.run(lambda block: _parse_block(block, layout), group)
        for block, (rows, status, position) in zip(group, results, strict=True):
            if status != text_parsing.FINE:
                line += block.count(b"\n", 0, position)
                raise source.error(_problem(status, block, position, layout), line)
            yield rows
            line += block.count(b"\n")


def matrices_of(samples: Samples, written_as: str) -> tuple[csr_matrix, csr_matrix | None]:
    """Return `X` and `Y`, checked, to be written in a matrix format."""
    if samples.X is None:
        raise DataFormatError(
            f"{written_as} holds matrices, but these samples are texts: write them as jsonl, csv, "
            "tsv, fasttext or parquet, or make features of them first"
        )
    X = csr_matrix(check_features(samples.X))
    return X, None if samples.Y is None else check_labels(samples.Y, n_samples=X.shape[0])


def lines_of(X: csr_matrix, Y: csr_matrix | None, first_feature: int) -> Iterator[str]:
    """Yield a line per row: labels, a space, features with just the digits that float32 needs."""
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        names = (X.indices[row] + first_feature).tolist()
        numbers = X.data[row].astype("U32").tolist()
        labels = [] if Y is None else Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()
        features = (f"{n}:{v.removesuffix('.0')}" for n, v in zip(names, numbers, strict=True))
        yield ",".join(map(str, labels)) + " " + " ".join(features)


def _parse_block(block: bytes, layout: Layout) -> tuple[Rows, int, int]:
    if not block.endswith(b"\n"):
        block += b"\n"
    n_lines, n_values = block.count(b"\n"), block.count(b":")
    row_starts, label_starts = np.zeros(n_lines + 1, np.int64), np.zeros(n_lines + 1, np.int64)
    columns, values = np.empty(n_values, np.int32), np.empty(n_values, np.float32)
    labels = np.empty(block.count(b",") + n_lines, np.int32)
    status, position, n_rows = text_parsing.parse_rows(
        np.frombuffer(block, np.uint8),
        layout.svmlight,
        layout.first_feature,
        layout.end_feature,
        layout.end_label,
        row_starts,
        columns,
        values,
        label_starts,
        labels,
    )
    return Rows(row_starts, columns, values, label_starts, labels).part(0, n_rows), status, position


def _problem(status: int, block: bytes, position: int, layout: Layout) -> str:
    word = block[position : position + 80].split(maxsplit=1)
    seen = repr(word[0].decode(errors="replace")) if word else "the end of the line"
    features = f"{layout.first_feature} ... {layout.end_feature - 1}"
    return {
        text_parsing.NO_LABEL: f"{seen} where label ids (whole numbers from 0, as in 3,17) belong",
        text_parsing.LABEL_RANGE: f"label {seen} is not in 0 ... {layout.end_label - 1}"
        if layout.end_label
        else f"label {seen}, but the header (n d) announces no labels",
        text_parsing.NO_FEATURE: f"{seen} where a feature:value belongs, as in 12:0.5",
        text_parsing.FEATURE_RANGE: f"feature {seen} is not in {features}",
        text_parsing.NO_VALUE: f"value {seen} is not a finite number",
        text_parsing.VALUE_RANGE: f"value {seen} is too large for float32",
    }[status]
