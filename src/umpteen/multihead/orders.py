"""In which order labels get their codes: at random, or similar ones together."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.clustering import arrange
from umpteen.errors import LabelsShapeError
from umpteen.validation import Features, check_features, check_seed, unit_rows

IntArray = npt.NDArray[np.int64]


def shuffled_order(n_labels: int, random_state: int | None) -> IntArray:
    """Return all labels in random order."""
    return np.random.default_rng(check_seed(random_state)).permutation(n_labels)


def clustered_order(
    label_features: Features, borders: list[IntArray], random_state: int | None
) -> IntArray:
    """Return all labels in an order where those between two borders are similar.

    Borders of coarse groups come before those of the finer groups within them. Every cut is a
    spherical 2-means whose halves end at a border, so groups are exactly as large as they must be.
    """
    rows = csr_matrix(unit_rows(check_features(label_features)), dtype=np.float32)
    order = np.arange(rows.shape[0], dtype=np.int32)
    if any(here[-1] != len(order) for here in borders):
        raise LabelsShapeError(
            f"label_features have {len(order):,} rows, expected one per label: {borders[0][-1]:,}"
        )
    return arrange(rows, order, borders, check_seed(random_state)).astype(np.int64)
