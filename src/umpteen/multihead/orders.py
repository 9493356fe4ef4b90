"""In which order labels get their codes: at random, or similar ones together."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.errors import LabelsShapeError
from umpteen.kernels.clustering import bisect
from umpteen.validation import Features, check_features, check_seed, unit_rows

IntArray = npt.NDArray[np.int64]

_MAX_ROUNDS = 20


def shuffled_order(n_labels: int, random_state: int | None) -> IntArray:
    """Return all labels, in random order."""
    return np.random.default_rng(check_seed(random_state)).permutation(n_labels)


def clustered_order(
    label_features: Features, borders: list[IntArray], random_state: int | None
) -> IntArray:
    """Return all labels, so that those between two borders are similar.

    Borders of coarse groups come before those of the finer groups within them. Every cut is a
    spherical 2-means whose halves end at a border, so groups are exactly as large as they must be.
    """
    rows = csr_matrix(unit_rows(check_features(label_features)), dtype=np.float32)
    order = np.arange(rows.shape[0], dtype=np.int32)
    if any(here[-1] != len(order) for here in borders):
        raise LabelsShapeError(
            f"label_features have {len(order):,} rows, expected one per label: {borders[0][-1]:,}"
        )
    scratch, seed = np.zeros(rows.shape[1], np.float32), check_seed(random_state)
    coarse = np.array([0, len(order)])
    for fine in borders:
        for start, end in pairwise(np.searchsorted(fine, coarse)):
            _cut(rows, order, fine[start : end + 1], seed, scratch)
        coarse = fine
    return order.astype(np.int64)


def _cut(
    rows: csr_matrix,
    order: npt.NDArray[np.int32],
    borders: IntArray,
    seed: int,
    scratch: npt.NDArray[np.float32],
) -> None:
    """Sort `order`, in place, into groups between the borders."""
    if len(borders) <= 2:
        return
    middle = len(borders) // 2
    start, split, end = (int(borders[i]) for i in (0, middle, -1))
    here = (seed * 1_000_003 + start * 8191 + end) & 0x7FFFFFFF
    labels = order[start:end]
    bisect(rows.indptr, rows.indices, rows.data, labels, split - start, _MAX_ROUNDS, here, scratch)
    _cut(rows, order, borders[: middle + 1], seed, scratch)
    _cut(rows, order, borders[middle:], seed, scratch)
