"""Any data set as one whose labels are known only per group of samples."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize
from sklearn.random_projection import SparseRandomProjection

from umpteen.clustering import Cut, cut_all
from umpteen.errors import FeaturesError, ParameterError
from umpteen.validation import (
    Features,
    as_csr,
    check_features,
    check_groups,
    check_k,
    check_labels,
    check_number,
    check_seed,
)

_ANY_NUMBER = 2**31 - 1
_MAX_ROUNDS = 10  # more hardly make clusters tighter
_LARGEST = 1e9  # values of features, and noise, whose squares and sums fit float32
_NOISY_WIDTH = 256  # dimensions that features with noise are projected to
_DENSITY = 1 / 32  # of that projection: eight dimensions for each feature


def group_randomly(n_samples: int, size: int, random_state: Any = 0) -> csr_matrix:
    """Return groups of `size` random samples, `(n_groups, n_samples)`; each sample is in one.

    The last group is smaller if `size` does not divide the number of samples.

    >>> groups = group_randomly(10, size=4, random_state=0)
    >>> groups.shape, groups.sum(axis=1).ravel().tolist()
    ((3, 10), [[4.0, 4.0, 2.0]])
    """
    n_samples, size = check_k(n_samples, "n_samples"), check_k(size, "size")
    if n_samples > _ANY_NUMBER:
        raise ParameterError(f"n_samples={n_samples} is not possible: expected at most 2^31 - 1")
    order = np.random.default_rng(check_seed(random_state)).permutation(n_samples)
    return _grouped(order, np.append(np.arange(0, n_samples, size), n_samples))


def group_by_clusters(X: Any, depth: int, noise: float = 0.0, random_state: Any = 0) -> csr_matrix:
    """Return groups of similar samples, `(2**depth, n)`, by halving all samples `depth` times.

    Each cut is a spherical 2-means with equal sizes, so the groups' sizes differ by one at most.

    With more `noise`, groups are more mixed: before clustering, a Gaussian vector about `noise`
    times as long as the mean row of `X` is added to each row. Rows of more than 256 features are
    first projected to 256 random dimensions. So sparse rows stay small, and the same `noise` has
    the same effect at any width; but the projection alone already blurs such rows a little.

    >>> X = np.repeat(np.eye(2), 3, axis=0)
    >>> group_by_clusters(X, depth=1, random_state=0).toarray()
    array([[0., 0., 0., 1., 1., 1.],
           [1., 1., 1., 0., 0., 0.]], dtype=float32)
    """
    features = check_features(X)
    _check_depth(depth, features.shape[0])
    noise = check_number(noise, "noise")
    rng = np.random.default_rng(check_seed(random_state))
    rows = as_csr(_with_noise(features, noise, rng) if noise else features)
    order, bounds = _halved(normalize(rows), depth, rng)
    return _grouped(order, bounds)


def aggregate(Y: Any, groups: Any, merge: Literal["list", "set"] = "list") -> csr_matrix:
    """Return how often each label occurs in each group, `(n_groups, n_labels)`.

    `merge="set"` says only whether it occurs.

    >>> aggregate([[0], [0, 1], [2]], [[0, 1], [2]]).toarray()
    array([[2., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    if not isinstance(merge, str) or merge not in ("list", "set"):
        raise ParameterError(
            f"merge={merge!r} is not possible: expected 'list' (labels with their counts) or "
            "'set' (each label once)"
        )
    labels = check_labels(Y)
    counts = csr_matrix(check_groups(groups, n_samples=labels.shape[0]) @ labels)
    counts.sort_indices()
    if merge == "set":
        counts.data[:] = 1
    return counts


def _check_depth(depth: Any, n_samples: int) -> None:
    if n_samples == 0:
        raise FeaturesError("X has no rows: there is nothing to group")
    deepest = n_samples.bit_length() - 1
    is_whole = isinstance(depth, int | np.integer) and not isinstance(depth, bool)
    if not is_whole or not 0 <= depth <= deepest:
        raise ParameterError(
            f"depth={depth!r} is not possible: 2**depth groups of {n_samples:,} samples, none of "
            f"them empty, need a whole number from 0 to {deepest}"
        )


def _grouped(order: npt.NDArray[Any], bounds: npt.NDArray[Any]) -> csr_matrix:
    """Groups of the samples that stand between two bounds each."""
    shape = (len(bounds) - 1, len(order))
    groups = csr_matrix(
        (np.ones(len(order), np.float32), order.astype(np.int32), bounds.astype(np.int32)), shape
    )
    groups.sort_indices()
    return groups


def _with_noise(X: Features, noise: float, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    if X.shape[1] > _NOISY_WIDTH:
        projection = SparseRandomProjection(
            _NOISY_WIDTH,
            density=_DENSITY,
            dense_output=True,
            random_state=int(rng.integers(_ANY_NUMBER)),
        )
        X = projection.fit_transform(X)
    table = np.asarray(X.toarray() if isinstance(X, csr_matrix) else X, np.float32)
    if np.abs(table).max(initial=0) > _LARGEST:  # squares would overflow; only directions matter
        table = table / np.float32(np.abs(table).max())
    noise = min(noise, _LARGEST)
    length = np.float32(noise * np.linalg.norm(table, axis=1).mean() / np.sqrt(table.shape[1]))
    noisy: npt.NDArray[np.float32] = rng.standard_normal(table.shape, np.float32)
    noisy *= length
    noisy += table
    return noisy


def _halved(
    rows: csr_matrix, depth: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return the samples in an order of similar ones side by side, and where each group begins."""
    n_samples = rows.shape[0]
    order, bounds = np.arange(n_samples, dtype=np.int32), np.array([0, n_samples])
    for level in range(1, depth + 1):
        finer = np.arange(2**level + 1) * n_samples // 2**level
        seeds = rng.integers(_ANY_NUMBER, size=len(bounds) - 1)
        table = np.column_stack([bounds[:-1], finer[1::2], bounds[1:], seeds])
        cuts = [Cut(*row) for row in table.tolist()]
        order = cut_all(rows, order, cuts, max_rounds=_MAX_ROUNDS, n_jobs=-1)
        bounds = finer
    return order, bounds
