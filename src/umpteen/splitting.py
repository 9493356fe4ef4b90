"""The validation split: drawn once by the outermost estimator, and passed down."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.scratch import slices
from umpteen.validation import Features, unit_rows

Mask = npt.NDArray[np.bool_]

_ALIKE = 0.4  # cosine
_MOST_ALIKE = 40
_PAIRS = 1 << 12  # of rows that are compared at a time


def validation_split(
    X: Features,
    Y: csr_matrix,
    seed: int,
    *,
    fraction: float = 0.1,
    most: int = 5_000,
    fewest: int = 50,
    copies_together: bool = False,
) -> Mask | None:
    """Return a random fraction of the samples, at most `most`, as a mask.

    It is None where there are fewer than `fewest` samples in all. Samples without features are
    never drawn: no method knows anything about them.

    With `copies_together`, sparse rows that follow one another and are alike (up to 40 of them) are
    drawn together. Near copies on both sides of the split flatter methods that remember samples.

    >>> ones = csr_matrix(np.ones((100, 1), np.float32))
    >>> validation_split(ones, ones, seed=0).sum()
    np.int64(10)
    """
    n = X.shape[0]
    n_drawn = min(round(fraction * n), most)
    random = np.random.default_rng(seed)
    groups = np.arange(n)
    if copies_together and isinstance(X, csr_matrix) and n >= fewest:
        groups = _near_copies(X)
    order = random.permutation(groups[-1] + 1 if n else 0)
    fit_in = np.cumsum(np.bincount(groups)[order]) <= n_drawn
    drawn = np.isin(groups, order[fit_in])
    drawn &= np.diff(X.indptr) > 0 if isinstance(X, csr_matrix) else X.reshape(n, -1).any(axis=1)
    return drawn if n >= fewest and drawn.any() and Y[~drawn].nnz else None


def learned_labels(Y: csr_matrix, split: Mask) -> tuple[csr_matrix, Mask]:
    """Return the labels of the split that other samples have as well, and a mask of the rest.

    A label that only samples of the split have cannot be learned without them, so that whatever
    chooses it on the split, it is not by what it learned.

    >>> Y = csr_matrix([[1, 0], [1, 1]])
    >>> expected, unlearned = learned_labels(Y, np.array([False, True]))
    >>> expected.toarray(), unlearned
    (array([[1, 0]]), array([False,  True]))
    """
    learned = np.bincount(Y[~split].indices, minlength=Y.shape[1]) > 0
    expected = csr_matrix(Y[split].multiply(learned))
    expected.eliminate_zeros()
    expected.sort_indices()
    return expected, ~learned & (np.bincount(Y.indices, minlength=Y.shape[1]) > 0)


def _near_copies(X: csr_matrix) -> npt.NDArray[np.int64]:
    """Number groups of rows that follow one another and are alike."""
    pairs = slices(X.shape[0] - 1, _PAIRS)  # so that a few rows at a time are in memory
    cosines = [_cosines_to_next(X[part.start : part.stop + 1]) for part in pairs]
    begins = np.flatnonzero(np.concatenate([[True], *(each < _ALIKE for each in cosines)]))
    sizes = np.diff(np.r_[begins, X.shape[0]])
    place = np.arange(X.shape[0]) - np.repeat(begins, sizes)
    return np.cumsum(place % _MOST_ALIKE == 0) - 1


def _cosines_to_next(X: csr_matrix) -> npt.NDArray[np.float64]:
    units = csr_matrix(unit_rows(X))
    return np.asarray(units[:-1].multiply(units[1:]).sum(axis=1)).ravel()
