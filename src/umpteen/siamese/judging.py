"""How much the signs of a label say together, learned from samples that were held out.

Cosines of texts, of centroids and of a label's own vector, and the scores of a companion, are of
unlike kinds, and what one is worth depends on the others: a rare label is better known by its text
than by its few samples. So a chance is learned, logistic in all signs and their products.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.special import expit

from umpteen.storage import storable

FloatArray = npt.NDArray[np.float32]
_FAR = 30.0  # standard deviations, beyond which a sign says no more; relevant ones go far
_RIDGE = 1e-4
_STEPS = 25
_CLOSE = 1e-4
_BLOCK = 65_536


@storable
@dataclass(frozen=True, eq=False)
class Judge:
    """The chance that a label is relevant, by its signs.

    >>> signs = np.array([[0.1], [0.2], [0.8], [0.9]] * 50, np.float32)
    >>> judge = Judge.learned(signs, signs[:, 0] > 0.5)
    >>> judge.chances(np.array([[[0.1], [0.9]]], np.float32)).round(1)
    array([[0., 1.]], dtype=float32)
    """

    means: FloatArray  # (signs,)
    scales: FloatArray  # (signs,)
    weights: FloatArray  # 1, all signs, all products of two: see `_terms`

    @classmethod
    def learned(cls, signs: FloatArray, relevant: npt.NDArray[np.bool_]) -> "Judge":
        """By Newton's method from `signs` (pairs, signs), with a little ridge."""
        means, scales = signs.mean(axis=0), signs.std(axis=0)
        scales = np.where(scales > 0, scales, 1).astype(np.float32)
        n_signs = signs.shape[1]
        weights = np.zeros(1 + n_signs + n_signs * (n_signs + 1) // 2)
        share = np.clip(relevant.mean(), 1e-6, 1 - 1e-6)
        weights[0] = np.log(share / (1 - share))
        loss = _loss(signs, relevant, means, scales, weights)
        for _ in range(_STEPS):
            step = _newton(signs, relevant, means, scales, weights)
            moved = _loss(signs, relevant, means, scales, weights - step)
            while moved > loss and np.abs(step).max() >= _CLOSE:  # too far: half the way
                step /= 2
                moved = _loss(signs, relevant, means, scales, weights - step)
            if np.abs(step).max() < _CLOSE:
                break
            weights, loss = weights - step, moved
        return cls(means.astype(np.float32), scales, weights.astype(np.float32))

    def chances(self, signs: FloatArray) -> FloatArray:
        """(n, candidates) of signs (n, candidates, signs)."""
        flat = signs.reshape(-1, signs.shape[-1])
        found = _chances(flat, self.means, self.scales, self.weights)
        return np.asarray(found.reshape(signs.shape[:-1]), np.float32)


def _newton(
    signs: FloatArray, relevant: npt.NDArray[np.bool_], means: Any, scales: Any, weights: Any
) -> npt.NDArray[np.float64]:
    """One step towards the weights of the highest likelihood."""
    ridge = np.full(len(weights), _RIDGE * len(signs))
    ridge[0] = 0
    slope, curve = ridge * weights, np.diag(ridge)
    for first in range(0, len(signs), _BLOCK):
        rows = slice(first, first + _BLOCK)
        terms = _terms(signs[rows], means, scales)
        chances = expit(terms @ weights)
        slope += terms.T @ (chances - relevant[rows])
        curve += (terms * (chances * (1 - chances))[:, None]).T @ terms
    return np.asarray(np.linalg.solve(curve, slope))


def _loss(
    signs: FloatArray, relevant: npt.NDArray[np.bool_], means: Any, scales: Any, weights: Any
) -> float:
    """Negative log-likelihood and ridge."""
    total = _RIDGE * len(signs) / 2 * float(weights[1:] @ weights[1:])
    for first in range(0, len(signs), _BLOCK):
        rows = slice(first, first + _BLOCK)
        logits = _terms(signs[rows], means, scales) @ weights
        total += float(np.logaddexp(0, logits).sum() - logits[relevant[rows]].sum())
    return total


@njit(nogil=True, cache=True)
def _terms(signs: Any, means: Any, scales: Any) -> Any:
    """1, the standardised signs, and the products of each with itself and those after it."""
    n_signs = signs.shape[1]
    terms = np.empty((len(signs), 1 + n_signs + n_signs * (n_signs + 1) // 2), np.float64)
    for row in range(len(signs)):
        terms[row, 0] = 1.0
        for i in range(n_signs):
            sign = (signs[row, i] - means[i]) / scales[i]
            terms[row, 1 + i] = min(max(sign, -_FAR), _FAR)
        place = 1 + n_signs
        for i in range(n_signs):
            for j in range(i, n_signs):
                terms[row, place] = terms[row, 1 + i] * terms[row, 1 + j]
                place += 1
    return terms


@njit(nogil=True, cache=True)
def _chances(signs: Any, means: Any, scales: Any, weights: Any) -> Any:
    """In one fixed order of sums."""
    found = np.empty(len(signs), np.float32)
    for row in range(len(signs)):
        terms = _terms(signs[row : row + 1], means, scales)
        total = 0.0
        for place in range(len(weights)):
            total += weights[place] * terms[0, place]
        found[row] = 1.0 / (1.0 + np.exp(-total))
    return found
