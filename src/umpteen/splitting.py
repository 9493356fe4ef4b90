"""The validation split: drawn once by whoever is outermost, and handed down."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.validation import Features


def validation_split(
    X: Features,
    Y: csr_matrix,
    seed: int,
    *,
    fraction: float = 0.1,
    most: int = 5_000,
    fewest: int = 50,
) -> npt.NDArray[np.bool_] | None:
    """Return a random fraction of the samples, at most so many, as a mask.

    It is None where there are fewer than `fewest` samples in all. Samples without features are
    never drawn: no method knows anything about them.

    >>> from scipy.sparse import csr_matrix
    >>> ones = csr_matrix(np.ones((100, 1), np.float32))
    >>> validation_split(ones, ones, seed=0).sum()
    np.int64(10)
    """
    n = X.shape[0]
    drawn = np.zeros(n, bool)
    drawn[np.random.default_rng(seed).permutation(n)[: min(round(fraction * n), most)]] = True
    drawn &= np.diff(X.indptr) > 0 if isinstance(X, csr_matrix) else X.reshape(n, -1).any(axis=1)
    return drawn if n >= fewest and drawn.any() and Y[~drawn].nnz else None
