"""Rows of the matrix formats on their way from blocks of text to `X` and `Y`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.data.samples import Samples
from umpteen.validation import check_features, check_labels


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

    def part(self, first: int, end: int) -> "Rows":
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


def in_batches(parts: Iterable[Rows], size: int | None) -> Iterator[list[Rows]]:
    """Yield lists of rows, `size` rows in all; with None, one list, even if it is empty."""
    if size is None:
        yield list(parts)
        return
    gathered: list[Rows] = []
    missing = size
    for rows in parts:
        start = 0
        while len(rows) - start >= missing:
            yield [*gathered, rows.part(start, start + missing)]
            start, gathered, missing = start + missing, [], size
        if start < len(rows):
            gathered.append(rows.part(start, len(rows)))
            missing -= len(rows) - start
    if gathered:
        yield gathered


def join(parts: list[Rows], n_features: int, n_labels: int | None) -> Samples:
    """Return one `X` and `Y` out of consecutive rows; without `n_labels` there is no `Y`."""
    n_rows = sum(map(len, parts))
    values = _joined([part.values for part in parts], np.float32)
    columns = _joined([part.columns for part in parts], np.int32)
    row_starts = _joined_starts([part.row_starts for part in parts])
    X = check_features(csr_matrix((values, columns, row_starts), shape=(n_rows, n_features)))
    if n_labels is None:
        return Samples(X=X)
    labels = _joined([part.labels for part in parts], np.int32)
    label_starts = _joined_starts([part.label_starts for part in parts])
    ones = np.ones(len(labels), np.float32)
    return Samples(
        X=X, Y=check_labels(csr_matrix((ones, labels, label_starts), shape=(n_rows, n_labels)))
    )


def _joined(arrays: list[Any], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *arrays])


def _joined_starts(starts: list[Any]) -> npt.NDArray[np.int64]:
    ends = np.cumsum([0, *(part[-1] for part in starts)])
    return np.concatenate(
        [[0], *(part[1:] + end for part, end in zip(starts, ends, strict=False))]
    ).astype(np.int64)
