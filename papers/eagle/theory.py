"""Section 5 of the paper as functions: the two estimators of Theorem 1, the bounds of 3 and 4.

Where the print is scrambled or wrong, what the proofs show is meant, and the docstring says so.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

FloatArray = npt.NDArray[np.float64]


def least_squares(X: FloatArray, Z: FloatArray) -> FloatArray:
    """`LR` of Equation 3: the coefficients (features, outputs) of outputs over features."""
    coefficients: FloatArray = np.linalg.lstsq(X, Z, rcond=None)[0].astype(np.float64, copy=False)
    return coefficients


def no_assignment(X: FloatArray, Z: FloatArray, groups: Any) -> FloatArray:
    """NoAS of Equation 3: least squares on the sums of each group, which need no pairs.

    >>> X, Z = np.array([[1.0], [2.0], [3.0]]), np.array([[4.0], [2.0], [6.0]])
    >>> no_assignment(X, Z, [[0, 1], [2]]).round(6)
    array([[2.]])
    """
    members = _members(groups, len(X))
    return least_squares(members @ X, members @ Z)


def with_assignment(
    X: FloatArray, Z: FloatArray, groups: Any, start: FloatArray | None = None
) -> FloatArray:
    """AS of Equation 3: each output of a group goes to its nearest sample, then least squares.

    "Nearest" is by the residual under `start`, by default NoAS. A sample may get several
    outputs, or none. Equation 3 prints one subscript for two things; the proof has it this way.

    >>> X, Z = np.array([[1.0], [2.0], [3.0]]), np.array([[4.0], [2.0], [6.0]])
    >>> with_assignment(X, Z, [[0, 1], [2]]).round(6)
    array([[2.]])
    """
    members = _members(groups, len(X))
    start = no_assignment(X, Z, members) if start is None else start
    return least_squares(X[assigned(X, Z, members, start)], Z[members.indices])


def assigned(X: FloatArray, Z: FloatArray, groups: Any, start: FloatArray) -> npt.NDArray[Any]:
    """For each member's output, group by group, the sample of the group that is nearest to it.

    Of equally near ones it is the first.
    """
    members = _members(groups, len(X))
    expected = X @ start
    chosen = np.empty(members.nnz, np.int64)
    for first, last in zip(members.indptr[:-1], members.indptr[1:], strict=True):
        inside = members.indices[first:last]
        if len(inside):
            apart = Z[inside, np.newaxis] - expected[np.newaxis, inside]  # output, sample, :
            chosen[first:last] = inside[(apart**2).sum(axis=2).argmin(axis=1)]
    return chosen


def theorem1_rate(group_size: int, between: float, within: float) -> float:
    """How much larger NoAS's error is than the oracle's, by Equation 4 over 5's first term.

    `between` and `within` are the deviations of the groups' centres and of samples around them.

    >>> theorem1_rate(9, between=0, within=1)
    3.0
    """
    spread = between**2 + within**2
    return math.sqrt(group_size * spread / (group_size * between**2 + within**2))


def theorem3_bound(f: float, delta: float, q: float) -> float:
    """Least cosine of a label's true embedding and the best one by Equation 2 (Theorem 3).

    `f` is the largest influence of noise, `delta` the least distance of two labels'
    embeddings, `q` the largest part of a label's groups that another label shares
    (Definition 2). Where the theorem says nothing, it is -1.

    >>> theorem3_bound(0, delta=0.5, q=0.5), theorem3_bound(0.3, delta=0.5, q=0.5)
    (1.0, -1.0)
    """
    certain = 1 - q - 2 * f / delta
    if certain <= 0:
        return -1.0
    r = 1 / certain - 1
    return max(-1.0, 1 - r * f - (math.sqrt(2) * r + 2) * f**2)


def theorem4_bound(cosine: float, alpha: float, f: float) -> float:
    """Least cosine after a step from `cosine`, where the share `alpha` of groups chose rightly.

    The step is to the chosen samples' mean direction, not Algorithm 1's small one.
    """
    distance = math.sqrt(2 * (1 - cosine))
    return alpha + (1 - alpha) * (cosine - distance) - f


def theorem4_holds(cosine: float, alpha: float, f: float) -> bool:
    """Whether the bound says that such a step brings the embedding nearer to the true one.

    The exact condition; the printed one gets easier with more noise and does not follow.

    >>> theorem4_holds(0.5, alpha=0.95, f=0.1), theorem4_holds(0.99, alpha=0.95, f=0.1)
    (True, False)
    """
    u = math.sqrt(1 - cosine)
    return alpha * u**2 - math.sqrt(2) * (1 - alpha) * u - f > 0


def theorem4_limit(alpha: float, f: float) -> float:
    """The cosine below which `theorem4_holds`, where steps may stop to help.

    >>> round(theorem4_limit(alpha=1, f=0.1), 6)
    0.9
    """
    b = math.sqrt(2) * (1 - alpha)
    return 1 - ((b + math.sqrt(b**2 + 4 * alpha * f)) / (2 * alpha)) ** 2


def theorem4_limit_printed(alpha: float, f: float) -> float:
    """The same as the paper prints it."""
    return 1 - 2 * ((1 - f / 2) / alpha - 1) ** 2


def overlap(group_labels: Any) -> float:
    """`q` of Definition 2: the largest part of a label's groups that another label is in.

    >>> overlap([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    0.5
    """
    occurs = csr_matrix(group_labels).astype(bool).astype(np.float64)
    shared = (occurs.T @ occurs).toarray()  # (labels, labels)
    sizes = shared.diagonal().copy()
    np.fill_diagonal(shared, 0)
    fewer = np.minimum.outer(sizes, sizes)
    return float((shared / np.where(fewer, fewer, 1)).max(initial=0))


def separation(embeddings: FloatArray) -> float:
    """`delta` of Definition 2: the least distance of two labels' embeddings.

    >>> round(separation(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])), 3)
    1.414
    """
    apart = np.linalg.norm(embeddings[:, np.newaxis] - embeddings, axis=2)
    np.fill_diagonal(apart, np.inf)
    return float(apart.min())


def _members(groups: Any, n_samples: int) -> csr_matrix:
    if not issparse(groups):
        rows = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        ones = np.ones(len(rows), np.float32)
        groups = csr_matrix((ones, (rows, np.concatenate(groups))), (len(groups), n_samples))
    return csr_matrix(groups)
