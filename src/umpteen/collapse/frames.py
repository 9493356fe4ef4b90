"""Where the rows of a fixed classifier point: a simplex, or directions of small cosines."""

import numpy as np
import numpy.typing as npt
from scipy.linalg import helmert

from umpteen.collapse.phases import family
from umpteen.validation import check_k

FloatArray = npt.NDArray[np.float32]

_FEW = 4  # vectors per dimension, below which a search can beat the families of signs
_BLOCK = 4096  # vectors whose angles are looked at together
_SHARPNESS = (1, 2, 3, 4)  # the energy is the sum of cosine^(2 * 2^sharpness)
_STEPS = 20  # for each sharpness


def simplex_etf(n_vectors: int, dimension: int) -> FloatArray:
    """Return unit vectors with the cosine -1 / (n_vectors - 1) between any two; equation (6).

    No `n_vectors` vectors can be farther apart. This needs `dimension >= n_vectors - 1`. With
    `n_vectors` dimensions or more, vector k is nearly axis k, and further axes are zero.

    >>> vectors = simplex_etf(3, 3)
    >>> (vectors @ vectors.T).round(2)
    array([[ 1. , -0.5, -0.5],
           [-0.5,  1. , -0.5],
           [-0.5, -0.5,  1. ]], dtype=float32)
    """
    vectors = np.zeros((n_vectors, dimension), np.float32)
    if n_vectors == 1:
        vectors[0, 0] = 1
    elif dimension >= n_vectors:
        vectors[:, :n_vectors] = np.eye(n_vectors) - 1 / n_vectors
    else:
        vectors[:] = helmert(n_vectors).T
    return vectors * np.float32(np.sqrt(n_vectors / max(n_vectors - 1, 1)))


def near_equal_angles(n_vectors: int, dimension: int, seed: int = 0) -> FloatArray:
    """Return unit vectors, more than a simplex has room for, with a small largest absolute cosine.

    Kerdock's, Goethals' or Gold's families of signs where they fit (turned at random where the
    dimension is no power of two); else, or where few vectors let a search do better, a descent on
    the sum of high powers of cosines from a random start. The same seed gives the same vectors.

    >>> vectors = near_equal_angles(1000, 64)
    >>> round(coherence(vectors), 3), round(welch_bound(1000, 64), 3)
    (0.125, 0.121)
    """
    found = family(n_vectors, dimension)
    random = np.random.default_rng(seed)
    if found is None or _is_searched(n_vectors, dimension, 2**found.power):
        searched = spread(random_frame(n_vectors, dimension, seed), random)
        if found is None or coherence(searched) < found.coherence:
            return searched
    return _turned(found.vectors(n_vectors), dimension, random)


def _is_searched(n_vectors: int, dimension: int, used: int) -> bool:
    """Whether a search may beat signs in `used` dimensions, and takes seconds only."""
    return n_vectors <= _FEW * dimension or (n_vectors <= _BLOCK and dimension > 1.25 * used)


def fixed_frame(n_vectors: int, dimension: int, seed: int = 0) -> FloatArray:
    """Return a simplex if the dimension is large enough, and otherwise near-equal angles.

    Up to `2 * dimension` vectors could also be the axes and their opposites, which have no positive
    cosine. But opposite rows cancel: the rows of a set of both labels would add up to 0. Near-equal
    angles avoid this, because their absolute cosines are small.
    """
    check_k(n_vectors, "n_labels")
    check_k(dimension, "in_features")
    if dimension >= n_vectors - 1:
        return simplex_etf(n_vectors, dimension)
    return near_equal_angles(n_vectors, dimension, seed)


def random_frame(n_vectors: int, dimension: int, seed: int = 0) -> FloatArray:
    """Return unit vectors in random directions."""
    drawn = np.random.default_rng(seed).standard_normal((n_vectors, dimension), np.float32)
    return _unit(drawn)


def coherence(vectors: FloatArray) -> float:
    """Return the largest absolute cosine between two of the unit vectors."""
    largest = 0.0
    for start in range(0, len(vectors), _BLOCK):
        cosines = np.abs(vectors[start:] @ vectors[start : start + _BLOCK].T)
        np.fill_diagonal(cosines, 0)
        largest = max(largest, float(cosines.max(initial=0)))
    return largest


def welch_bound(n_vectors: int, dimension: int) -> float:
    """Return the lowest possible coherence of `n_vectors` unit vectors (Welch, 1974)."""
    check_k(n_vectors, "n_vectors")
    check_k(dimension, "dimension")
    if n_vectors <= dimension:
        return 0.0
    return float(np.sqrt((n_vectors - dimension) / (dimension * (n_vectors - 1))))


def spread(vectors: FloatArray, random: np.random.Generator) -> FloatArray:
    """Move unit vectors apart: descent on the sum of ever higher powers of their cosines.

    Where there are more than a few thousand, each step looks at random blocks of them, and there
    are fewer steps.
    """
    vectors = vectors.copy()
    n_steps = max(_STEPS * _BLOCK // max(len(vectors), _BLOCK), 1)
    for sharpness in _SHARPNESS:
        for step in range(n_steps):
            order = random.permutation(len(vectors))
            for start in range(0, len(order), _BLOCK):
                rows = order[start : start + _BLOCK]
                vectors[rows] = _apart(vectors[rows], sharpness, 0.3 * (1 - step / n_steps))
    return vectors


def _apart(vectors: FloatArray, sharpness: int, length: float) -> FloatArray:
    """One step: each vector moves by at most `length`, away from those it is closest to."""
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, 0)
    cosines /= np.abs(cosines).max() + 1e-12  # so that no power vanishes in float32
    powers = cosines.copy()
    for _ in range(sharpness):
        powers *= powers
    # d/dw of cosine^(2p) is cosine^(2p - 1), in the direction of the other vector.
    np.divide(powers, cosines, out=powers, where=cosines != 0)
    slopes = powers @ vectors
    slopes -= (slopes * vectors).sum(axis=1, keepdims=True) * vectors
    steepest = np.linalg.norm(slopes, axis=1).max() + 1e-12
    return _unit(vectors - np.float32(length / steepest) * slopes)


def _turned(vectors: FloatArray, dimension: int, random: np.random.Generator) -> FloatArray:
    """The same angles with all axes in use, where there are more axes than needed."""
    if vectors.shape[1] == dimension:
        return vectors
    turn, _ = np.linalg.qr(random.standard_normal((dimension, vectors.shape[1])))
    return _unit((vectors @ turn.T.astype(np.float32)).astype(np.float32))


def _unit(vectors: npt.NDArray[np.floating]) -> FloatArray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)
