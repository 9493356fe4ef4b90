"""A ranker whose weights of the evidence for a candidate are learned.

Cosines to texts, to centroids and to a label's own vector are not comparable, and the value of one
depends on the others: a rare label is better described by its text than by its few samples. So
scores are linear in all columns of the evidence and their products, with weights that are learned
on a validation split.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit

from umpteen import parallel
from umpteen.kernels.compiling import frozen
from umpteen.kernels.label_evidence import quadratic_probabilities, quadratic_terms
from umpteen.storage import Shape, Sizes, storable

FloatArray = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
_RIDGE, _LOGISTIC_RIDGE = 2e-3, 5e-2  # per relevant pair
_STEPS = 25
_CLOSE, _LEAST = 1e-2, 1e-4  # the step after a close one would be of its square
_BLOCK = 65_536  # pairs, or a few more
_UNRESTRAINED = 1e6


@storable
@dataclass(frozen=True, eq=False)
class QuadraticRanker:
    """The probability that a candidate is relevant, by the evidence for it.

    The weights of `fitted` maximise the likelihood of the relevant candidates of each sample in a
    softmax over its candidates, which favours rare labels. Then a logistic scale and shift map
    scores to probabilities. Those of `logistic` maximise the likelihood of each pair by itself,
    which is better for the first answers if some labels are very frequent.

    >>> evidence = np.array([[0.1], [0.2], [0.8], [0.9]] * 50, np.float32)
    >>> ranker = QuadraticRanker.fitted(evidence, evidence[:, 0] > 0.5, np.full(50, 4))
    >>> ranker.probabilities(np.array([[[0.1], [0.9]]], np.float32)).round(1)
    array([[0., 1.]], dtype=float32)
    """

    means: Annotated[FloatArray, Shape("columns")]
    scales: Annotated[FloatArray, Shape("columns")]
    weights: Annotated[FloatArray, Shape("terms")]  # see `quadratic_terms`

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: a number of weights that no evidence has."""
        n_columns = len(self.means)
        if len(self.weights) != 1 + n_columns * (n_columns + 3) // 2:
            yield f"has {len(self.weights)} weights for {n_columns} columns"
        if not (self.scales > 0).all():
            yield "has scales that are not above 0"

    @classmethod
    def fitted(
        cls,
        evidence: FloatArray,
        relevant: npt.NDArray[np.bool_],
        n_candidates: npt.NDArray[np.integer],
        near: "QuadraticRanker | None" = None,
    ) -> "QuadraticRanker":
        """Fit by Newton's method to evidence (pairs, columns); each sample's pairs are in a row.

        It is faster if it starts from a ranker of similar evidence, `near`.
        """
        means, scales = evidence.mean(axis=0), evidence.std(axis=0)
        scales = np.where(scales > 0, scales, 1).astype(np.float32)
        pairs = _Pairs(evidence, relevant, n_candidates, means, scales)
        with parallel.one_thread_each:  # threads of BLAS wait for a busy core for seconds
            weights = pairs.teaching().likeliest_weights(None if near is None else near.weights)
            shift, scale = _as_probabilities(pairs.scores(weights), relevant)
        return cls(
            means.astype(np.float32), scales, np.r_[shift, scale * weights].astype(np.float32)
        )

    @classmethod
    def logistic(cls, evidence: FloatArray, relevant: npt.NDArray[np.bool_]) -> "QuadraticRanker":
        """Fit a logistic regression to evidence (pairs, columns), by Newton's method."""
        means, scales = evidence.mean(axis=0), evidence.std(axis=0)
        scales = np.where(scales > 0, scales, 1).astype(np.float32)
        pairs = _LogisticPairs(evidence, relevant, np.zeros(0, np.int64), means, scales)
        with parallel.one_thread_each:
            weights = pairs.likeliest_weights()
        return cls(means.astype(np.float32), scales, weights.astype(np.float32))

    def probabilities(self, evidence: FloatArray) -> FloatArray:
        """Return (n, candidates) from evidence (n, candidates, columns)."""
        flat = evidence.reshape(-1, evidence.shape[-1])
        found = quadratic_probabilities(*frozen((flat, self.means, self.scales, self.weights)))
        return np.asarray(found.reshape(evidence.shape[:-1]), np.float32)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Candidates of samples: the evidence, and which are relevant."""

    evidence: FloatArray
    relevant: npt.NDArray[np.bool_]
    n_candidates: npt.NDArray[np.integer]  # of each sample
    means: FloatArray
    scales: FloatArray

    def teaching(self) -> "_Pairs":
        """Return the pairs of samples that have a relevant one: weights do not depend on others."""
        sample = np.repeat(np.arange(len(self.n_candidates)), self.n_candidates)
        has_relevant = np.bincount(sample[self.relevant], minlength=len(self.n_candidates)) > 0
        kept = has_relevant[sample]
        return replace(
            self, evidence=self.evidence[kept], relevant=self.relevant[kept],
            n_candidates=self.n_candidates[has_relevant],
        )  # fmt: skip

    def likeliest_weights(self, near: FloatArray | None = None) -> Doubles:
        """Return the weights of the least loss, by Newton's method."""
        n_columns = self.evidence.shape[1]
        weights = np.zeros(n_columns * (n_columns + 3) // 2)
        if near is not None:
            weights += near[1:]
        return _minimised(weights, self.loss, self.newton)

    def loss(self, weights: Doubles) -> float:
        """Return the negative log-likelihood of relevant candidates, plus the ridge penalty."""
        total = self._ridge / 2 * float(weights @ weights)
        for terms, relevant, begins in self._blocks():
            scores = terms @ weights
            peaks = np.maximum.reduceat(scores, begins)
            shares = np.exp(scores - _spread(peaks, begins, len(scores)))
            sums = peaks + np.log(np.add.reduceat(shares, begins))
            total += float(np.add.reduceat(relevant, begins) @ sums - scores @ relevant)
        return total

    def newton(self, weights: Doubles) -> Doubles:
        """Return the Newton step at these weights, which is subtracted from them."""
        slope, curve = self._ridge * weights, self._ridge * np.eye(len(weights))
        for terms, relevant, begins in self._blocks():
            scores, n = terms @ weights, len(terms)
            shares = np.exp(scores - _spread(np.maximum.reduceat(scores, begins), begins, n))
            shares /= _spread(np.add.reduceat(shares, begins), begins, n)
            n_relevant = np.add.reduceat(relevant, begins)
            expected = shares * _spread(n_relevant, begins, n)
            means = np.add.reduceat(terms * shares[:, None], begins, axis=0)  # (samples, terms)
            slope += terms.T @ (expected - relevant)
            curve += _gram(terms, expected) - _gram(means, n_relevant)
        return np.asarray(np.linalg.solve(curve, slope))

    def scores(self, weights: Doubles) -> Doubles:
        """Return the scores of all pairs."""
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
            terms = quadratic_terms(self.evidence[rows], self.means, self.scales)[:, 1:]
            yield terms, self.relevant[rows].astype(float), begins[first:last] - begins[first]
            first = last


class _LogisticPairs(_Pairs):
    """The same, where each pair is a case by itself; the first weight is the constant term."""

    def likeliest_weights(self, near: FloatArray | None = None) -> Doubles:
        n_columns = self.evidence.shape[1]
        weights = np.zeros(1 + n_columns * (n_columns + 3) // 2)
        share = np.clip(self.relevant.mean(), _LEAST, 1 - _LEAST)
        weights[0] = np.log(share / (1 - share))
        return _minimised(weights, self.loss, self.newton)

    def loss(self, weights: Doubles) -> float:
        """Return the negative log-likelihood of all pairs, plus the ridge penalty."""
        total = float(self._ridges(weights) @ (weights * weights)) / 2
        for terms, relevant in self._pairs():
            scores = terms @ weights
            total += float(np.logaddexp(0, scores).sum() - scores @ relevant)
        return total

    def newton(self, weights: Doubles) -> Doubles:
        """Return the Newton step at these weights, which is subtracted from them."""
        ridges = self._ridges(weights)
        slope, curve = ridges * weights, np.diag(ridges)
        for terms, relevant in self._pairs():
            likely = expit(terms @ weights)
            slope += terms.T @ (likely - relevant)
            curve += _gram(terms, likely * (1 - likely))
        return np.asarray(np.linalg.solve(curve + _LEAST * np.eye(len(curve)), slope))

    def _ridges(self, weights: Doubles) -> Doubles:
        each = _LOGISTIC_RIDGE * max(1, int(self.relevant.sum()))
        return np.asarray(np.r_[0.0, np.full(len(weights) - 1, each)])

    def _pairs(self) -> Iterator[tuple[Doubles, Doubles]]:
        """Terms, and which are relevant: of some pairs at a time."""
        for first in range(0, len(self.relevant), _BLOCK):
            rows = slice(first, first + _BLOCK)
            terms = quadratic_terms(self.evidence[rows], self.means, self.scales)
            yield terms, self.relevant[rows].astype(float)


def _minimised(
    weights: Doubles, loss_of: Callable[[Doubles], float], newton: Callable[[Doubles], Doubles]
) -> Doubles:
    """Weights of the least loss: steps of Newton's method, shorter ones where these go too far."""
    loss = loss_of(weights)
    for _ in range(_STEPS):
        step = newton(weights)
        is_last = np.abs(step).max() < _CLOSE
        moved = loss_of(weights - step)
        while moved > loss and np.abs(step).max() >= _LEAST:  # too far: half the step
            step /= 2
            moved = loss_of(weights - step)
        if moved > loss:
            break
        weights, loss = weights - step, moved
        if is_last:
            break
    return weights


def _gram(rows: Doubles, weights: Doubles) -> Doubles:
    """The sum of weighted products of each row with itself; numpy computes one half of them."""
    scaled = rows * np.sqrt(weights)[:, None]
    return scaled.T @ scaled


def _spread(values: Doubles, begins: npt.NDArray[np.int64], n: int) -> Doubles:
    """The value of each sample for each of its pairs."""
    return np.repeat(values, np.diff(np.r_[begins, n]))


def _as_probabilities(scores: Doubles, relevant: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Shift and scale."""
    if relevant.all():
        return 0.0, 1.0
    from sklearn.linear_model import LogisticRegression  # 9 MB that most models never need

    fitted = LogisticRegression(C=_UNRESTRAINED).fit(scores[:, None], relevant)
    shift, scale = float(fitted.intercept_[0]), float(fitted.coef_[0, 0])
    if scale > 0:
        return shift, scale
    # Samples with high scores have few relevant labels: never turn the order within samples.
    share = float(relevant.mean())
    return float(brentq(lambda by: expit(scores + by).mean() - share, -1e3, 1e3)), 1.0
