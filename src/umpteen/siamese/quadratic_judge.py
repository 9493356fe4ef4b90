"""How much the signs of a label say together, where there is no companion.

Cosines of texts, of centroids and of a label's own vector are of unlike kinds, and what one is
worth depends on the others: a rare label is better known by its text than by its few samples. So
a score is learned that is linear in all signs and their products, from samples held out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from umpteen.storage import Shape, Sizes, storable

FloatArray = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
_FAR = 30.0  # standard deviations, beyond which a sign says no more; relevant ones go far
_RIDGE = 2e-3  # per relevant pair
_STEPS = 25
_CLOSE = 1e-4
_BLOCK = 65_536  # pairs, or a few more
_UNRESTRAINED = 1e6


@storable
@dataclass(frozen=True, eq=False)
class QuadraticJudge:
    """The chance that a label is relevant, by its signs.

    Weights are those under which the relevant candidates of each sample are likeliest among its
    candidates (a softmax): what ranks labels well. Then one scale and one shift, logistic, make
    chances of scores. Learned as chances from the outset, rare labels fare worse.

    >>> signs = np.array([[0.1], [0.2], [0.8], [0.9]] * 50, np.float32)
    >>> judge = QuadraticJudge.learned(signs, signs[:, 0] > 0.5, np.full(50, 4))
    >>> judge.chances(np.array([[[0.1], [0.9]]], np.float32)).round(1)
    array([[0., 1.]], dtype=float32)
    """

    means: Annotated[FloatArray, Shape("signs")]
    scales: Annotated[FloatArray, Shape("signs")]
    weights: Annotated[FloatArray, Shape("terms")]  # 1, signs, products of two: see `_terms`

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: a number of weights that no signs have."""
        n_signs = len(self.means)
        if len(self.weights) != 1 + n_signs * (n_signs + 3) // 2:
            yield f"has {len(self.weights)} weights for {n_signs} signs"

    @classmethod
    def learned(
        cls,
        signs: FloatArray,
        relevant: npt.NDArray[np.bool_],
        n_candidates: npt.NDArray[np.integer],
    ) -> "QuadraticJudge":
        """By Newton's method from `signs` (pairs, signs); each sample's pairs are in a row."""
        means, scales = signs.mean(axis=0), signs.std(axis=0)
        scales = np.where(scales > 0, scales, 1).astype(np.float32)
        pairs = _Pairs(signs, relevant, n_candidates, means, scales)
        weights = np.zeros(signs.shape[1] * (signs.shape[1] + 3) // 2)
        loss = pairs.loss(weights)
        for _ in range(_STEPS):
            step = pairs.newton(weights)
            moved = pairs.loss(weights - step)
            while moved > loss and np.abs(step).max() >= _CLOSE:  # too far: half the way
                step /= 2
                moved = pairs.loss(weights - step)
            if np.abs(step).max() < _CLOSE:
                break
            weights, loss = weights - step, moved
        shift, scale = _as_chances(pairs.scores(weights), relevant)
        return cls(
            means.astype(np.float32), scales, np.r_[shift, scale * weights].astype(np.float32)
        )

    def chances(self, signs: FloatArray) -> FloatArray:
        """(n, candidates) of signs (n, candidates, signs)."""
        flat = signs.reshape(-1, signs.shape[-1])
        found = _chances(flat, self.means, self.scales, self.weights)
        return np.asarray(found.reshape(signs.shape[:-1]), np.float32)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Candidates of samples: their signs, and which are relevant."""

    signs: FloatArray
    relevant: npt.NDArray[np.bool_]
    n_candidates: npt.NDArray[np.integer]  # of each sample
    means: FloatArray
    scales: FloatArray

    def loss(self, weights: Doubles) -> float:
        """Minus the log-likelihood of relevant candidates, and ridge."""
        total = self._ridge / 2 * float(weights @ weights)
        for terms, relevant, begins in self._blocks():
            scores = terms @ weights
            peaks = np.maximum.reduceat(scores, begins)
            shares = np.exp(scores - _spread(peaks, begins, len(scores)))
            sums = peaks + np.log(np.add.reduceat(shares, begins))
            total += float(np.add.reduceat(relevant, begins) @ sums - scores @ relevant)
        return total

    def newton(self, weights: Doubles) -> Doubles:
        """One step towards the weights of the least loss."""
        slope, curve = self._ridge * weights, self._ridge * np.eye(len(weights))
        for terms, relevant, begins in self._blocks():
            scores, n = terms @ weights, len(terms)
            shares = np.exp(scores - _spread(np.maximum.reduceat(scores, begins), begins, n))
            shares /= _spread(np.add.reduceat(shares, begins), begins, n)
            n_relevant = np.add.reduceat(relevant, begins)
            expected = shares * _spread(n_relevant, begins, n)
            means = np.add.reduceat(terms * shares[:, None], begins, axis=0)  # (samples, terms)
            slope += terms.T @ (expected - relevant)
            curve += (terms * expected[:, None]).T @ terms - (means * n_relevant[:, None]).T @ means
        return np.asarray(np.linalg.solve(curve, slope))

    def scores(self, weights: Doubles) -> Doubles:
        """Of all pairs."""
        return np.concatenate([terms @ weights for terms, _, _ in self._blocks()])

    @property
    def _ridge(self) -> float:
        return _RIDGE * max(1, int(self.relevant.sum()))

    def _blocks(self) -> Iterator[tuple[Doubles, Doubles, npt.NDArray[np.int64]]]:
        """Terms, which are relevant, and where samples begin: of some samples at a time."""
        ends = np.cumsum(self.n_candidates[self.n_candidates > 0])
        begins = np.r_[0, ends[:-1]]
        first = 0
        while first < len(ends):
            last = max(first + 1, int(np.searchsorted(ends, begins[first] + _BLOCK)))
            rows = slice(begins[first], ends[last - 1])
            terms = _terms(self.signs[rows], self.means, self.scales)[:, 1:]
            yield terms, self.relevant[rows].astype(float), begins[first:last] - begins[first]
            first = last


def _spread(values: Doubles, begins: npt.NDArray[np.int64], n: int) -> Doubles:
    """The value of each sample for each of its pairs."""
    return np.repeat(values, np.diff(np.r_[begins, n]))


def _as_chances(scores: Doubles, relevant: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Shift and scale."""
    if relevant.all():
        return 0.0, 1.0
    fitted = LogisticRegression(C=_UNRESTRAINED).fit(scores[:, None], relevant)
    shift, scale = float(fitted.intercept_[0]), float(fitted.coef_[0, 0])
    if scale > 0:
        return shift, scale
    # Samples with high scores have few relevant labels: never turn the order within samples.
    share = float(relevant.mean())
    return float(brentq(lambda by: expit(scores + by).mean() - share, -1e3, 1e3)), 1.0


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
