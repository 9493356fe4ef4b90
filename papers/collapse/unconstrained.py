"""The unconstrained-features model: what training would find if features could be anything."""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import logsumexp

from papers.collapse.optimum import Collapsed, collapsed_optimum
from umpteen.errors import ParameterError

FloatArray = npt.NDArray[np.float64]

_MOST_SAMPLES = 1_000_000  # that are listed one by one
_STEP = 1e-5  # of differences
_PENALTIES = (1e-100, 1e100)  # beyond, numbers of the optimum do not fit into 64 bits


@dataclass(frozen=True)
class Solution:
    """What descent found, and the objective there."""

    weight: FloatArray  # (n_labels, dimension)
    features: FloatArray  # (n_samples, dimension)
    bias: FloatArray  # (n_labels,)
    objective: float


@dataclass(frozen=True)
class UnconstrainedFeatures:
    """Definition 1 of the paper: pick-all-labels cross-entropy over weight, features and bias.

    All label sets of a multiplicity (their number of labels) have equally many samples,
    `samples[multiplicity]`; or each set has its own number, `counts[labels]`, where that is given,
    and 0 is a set that is missing. The loss is averaged over samples; the penalties multiply the
    sums of squares: weight_penalty |W|^2 + feature_penalty |H|^2 + bias_penalty |b|^2. `normalize`
    divides a sample's loss by its number of labels.

    >>> model = UnconstrainedFeatures(4, {1: 2, 2: 1}, 0.005, 0.005)
    >>> found, theory = model.descend(dimension=5), model.optimum()
    >>> round(found.objective, 6) == round(theory.objective, 6)
    True
    """

    n_labels: int
    samples: dict[int, int] = field(hash=False)
    weight_penalty: float
    feature_penalty: float
    bias_penalty: float = 0.0
    normalize: bool = False
    counts: dict[tuple[int, ...], int] = field(default_factory=dict, hash=False)

    @property
    def n_samples(self) -> int:
        """The number of samples, counted without listing them."""
        others = (n - self.samples.get(len(labels), 0) for labels, n in self.counts.items())
        return sum(self._totals().values()) + sum(others)

    def _totals(self) -> dict[int, int]:
        """The number of samples of each multiplicity."""
        return {m: count * comb(self.n_labels, m) for m, count in sorted(self.samples.items())}

    @cached_property
    def label_sets(self) -> list[tuple[int, ...]]:
        """The label set of each sample."""
        if self.n_samples > _MOST_SAMPLES:
            raise ParameterError(
                f"n_labels={self.n_labels} and samples={self.samples} give too many samples to "
                f"list (more than {_MOST_SAMPLES:,}): take fewer labels, or use `optimum` or "
                "`zero_from`, which need no list"
            )
        return [
            labels
            for multiplicity, count in sorted(self.samples.items())
            for labels in combinations(range(self.n_labels), multiplicity)
            for _ in range(self.counts.get(labels, count))
        ]

    @cached_property
    def targets(self) -> FloatArray:
        """What each label counts in each sample's loss, `(n_samples, n_labels)`."""
        targets = np.zeros((len(self.label_sets), self.n_labels))
        for row, labels in enumerate(self.label_sets):
            targets[row, list(labels)] = 1 / len(labels) if self.normalize else 1
        return targets

    def objective(self, weight: FloatArray, features: FloatArray, bias: FloatArray) -> float:
        """Equation (4)."""
        return self._objective_and_slopes(weight, features, bias)[0]

    def descend(self, dimension: int, seed: int = 0, max_steps: int = 20_000) -> Solution:
        """Minimise over weight, features and bias by L-BFGS from a random start."""
        shapes = [(self.n_labels, dimension), (len(self.label_sets), dimension), (self.n_labels,)]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

        def unpacked(values: FloatArray) -> list[FloatArray]:
            pieces = np.split(values, ends[:-1])
            return [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]

        def objective_and_slope(values: FloatArray) -> tuple[float, FloatArray]:
            value, slopes = self._objective_and_slopes(*unpacked(values))
            return value, np.concatenate([slope.ravel() for slope in slopes])

        start = 0.5 * np.random.default_rng(seed).standard_normal(ends[-1])
        options: Any = {
            "maxiter": max_steps,
            "maxfun": 2 * max_steps,
            "maxcor": 30,
            "gtol": 1e-12,
            "ftol": 1e-16,
        }
        found = minimize(objective_and_slope, start, jac=True, method="L-BFGS-B", options=options)
        weight, features, bias = unpacked(found.x)
        return Solution(weight, features, bias, float(found.fun))

    def optimum(self) -> Collapsed:
        """The exact optimum, which needs `n_labels - 1` dimensions or more; Theorem 1."""
        self._check_balanced()
        return collapsed_optimum(
            self.n_labels, self._totals(), self.weight_penalty, self.feature_penalty, self.normalize
        )

    @property
    def zero_from(self) -> float:
        """The smallest `weight_penalty * feature_penalty` at which the optimum is all zeros."""
        self._check_balanced()
        total = sum(
            Fraction(count * m * (self.n_labels - m), m**2 if self.normalize else 1)
            for m, count in self._totals().items()
        )
        pairs = self.n_labels * max(self.n_labels - 1, 1)
        return float(total / (4 * self.n_samples**2 * pairs))

    def smallest_curvature(self, at: Solution) -> float:
        """The smallest eigenvalue of the Hessian, by differences of slopes; of small models."""
        arrays = (at.weight, at.features, at.bias)
        shapes, point = [a.shape for a in arrays], np.concatenate([a.ravel() for a in arrays])
        ends = np.cumsum([array.size for array in arrays])[:-1]

        def slope(values: FloatArray) -> FloatArray:
            pieces = np.split(values, ends)
            unpacked = [each.reshape(shape) for each, shape in zip(pieces, shapes, strict=True)]
            slopes = self._objective_and_slopes(*unpacked)[1]
            return np.concatenate([each.ravel() for each in slopes])

        steps = _STEP * np.eye(len(point))
        hessian = np.stack([slope(point + s) - slope(point - s) for s in steps]) / (2 * _STEP)
        return float(np.linalg.eigvalsh((hessian + hessian.T) / 2)[0])

    def steepness(self, at: Solution) -> float:
        """The length of the gradient: 0 at minima and saddles."""
        slopes = self._objective_and_slopes(at.weight, at.features, at.bias)[1]
        return float(np.sqrt(sum((slope**2).sum() for slope in slopes)))

    def _check_balanced(self) -> None:
        if self.counts:
            raise ParameterError(
                "label sets with numbers of their own have no optimum in closed form: use `descend`"
            )

    def _objective_and_slopes(
        self, weight: FloatArray, features: FloatArray, bias: FloatArray
    ) -> tuple[float, tuple[FloatArray, FloatArray, FloatArray]]:
        logits = features @ weight.T + bias
        normalizer = logsumexp(logits, axis=1, keepdims=True)
        penalties = (self.weight_penalty, self.feature_penalty, self.bias_penalty)
        squares = ((weight**2).sum(), (features**2).sum(), (bias**2).sum())
        loss = (self.targets * (normalizer - logits)).sum() / len(logits)
        value = loss + sum(p * square for p, square in zip(penalties, squares, strict=True))
        of_sample = self.targets.sum(axis=1, keepdims=True)
        slope = (of_sample * np.exp(logits - normalizer) - self.targets) / len(logits)
        slopes = (
            slope.T @ features + 2 * self.weight_penalty * weight,
            slope @ weight + 2 * self.feature_penalty * features,
            slope.sum(axis=0) + 2 * self.bias_penalty * bias,
        )
        return float(value), slopes
