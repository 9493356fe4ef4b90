"""What the two matrix formats share: lines of `label,label feature:value feature:value`.

A file is read in blocks of whole lines. A kernel turns each into arrays of its own, several
blocks side by side, and the arrays are joined at the end.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import parallel
from umpteen.data.formats.source import Source
from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError
from umpteen.kernels import text_parsing
from umpteen.validation import check_features, check_labels

MAX_ID = 2**31 - 1


@dataclass(frozen=True)
class Rows:
    """Consecutive rows: features and labels, each as in CSR."""

    row_starts: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    label_starts: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.row_starts) - 1

    def slice(self, first: int, end: int) -> "Rows":
        """Return some of the rows, sharing memory."""
        row_starts, label_starts = (
            self.row_starts[first : end + 1],
            self.label_starts[first : end + 1],
        )
        return Rows(
            row_starts - row_starts[0],
            self.columns[row_starts[0] : row_starts[-1]],
            self.values[row_starts[0] : row_starts[-1]],
            label_starts - label_starts[0],
            self.labels[label_starts[0] : label_starts[-1]],
        )


def in_batches(blocks: Iterable[Rows], size: int | None) -> Iterator[list[Rows]]:
    """Yield lists of rows, `size` rows in all; with None, one list, even if it is empty."""
    if size is None:
        yield list(blocks)
        return
    gathered: list[Rows] = []
    missing = size
    for rows in blocks:
        start = 0
        while len(rows) - start >= missing:
            yield [*gathered, rows.slice(start, start + missing)]
            start, gathered, missing = start + missing, [], size
        if start < len(rows):
            gathered.append(rows.slice(start, len(rows)))
            missing -= len(rows) - start
    if gathered:
        yield gathered


def join(blocks: list[Rows], n_features: int, n_labels: int | None) -> Samples:
    """Return one `X` and `Y` out of consecutive rows; without `n_labels` there is no `Y`."""
    n_rows = sum(map(len, blocks))
    values = _joined([rows.values for rows in blocks], np.float32)
    columns = _joined([rows.columns for rows in blocks], np.int32)
    row_starts = _joined_starts([rows.row_starts for rows in blocks])
    X = check_features(csr_matrix((values, columns, row_starts), shape=(n_rows, n_features)))
    if n_labels is None:
        return Samples(X=X)
    labels = _joined([rows.labels for rows in blocks], np.int32)
    label_starts = _joined_starts([rows.label_starts for rows in blocks])
    ones = np.ones(len(labels), np.float32)
    return Samples(
        X=X, Y=check_labels(csr_matrix((ones, labels, label_starts), shape=(n_rows, n_labels)))
    )


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
    return (
        Rows(row_starts, columns, values, label_starts, labels).slice(0, n_rows),
        status,
        position,
    )


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


def _joined(arrays: list[Any], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *arrays])


def _joined_starts(starts: list[Any]) -> npt.NDArray[np.int64]:
    ends = np.cumsum([0, *(part[-1] for part in starts)])
    return np.concatenate(
        [[0], *(part[1:] + end for part, end in zip(starts, ends, strict=False))]
    ).astype(np.int64)
