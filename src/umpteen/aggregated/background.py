"""What all samples have in common, to be subtracted from the embeddings of labels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.aggregated.problem import Problem

FloatArray = npt.NDArray[np.float32]
_RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_MOST_VALIDATION = 150  # validation groups of a ridge, each by all labels,
_MOST_JUDGEMENTS = 20_000_000  # or fewer, so that memory stays bounded
_FEW = 0.05  # judges without which the directions are the same
_FEWEST_GROUPS = 20  # with fewer, directions and their validation would be chance


@dataclass(frozen=True, eq=False)
class Background:
    """The samples' mean, and directions in which groups differ anyway.

    An embedding is a sum over groups, most of whose samples have nothing to do with the label. So
    it points to the average sample, and along the main directions of the groups' sums. Therefore,
    similarity is measured after the mean is subtracted and these directions are shrunk:
    <x - mean, e> becomes <x - mean, e> - sum of `shrink` * (x - mean, u) * (e, u). This is ridge
    regression of the groups' labels on the groups' sums, exact along these directions. It is the
    use of negative groups that the paper suggests in its conclusion.
    """

    mean: FloatArray  # (d,)
    directions: FloatArray  # (d, r)
    shrink: FloatArray  # (r,)

    @classmethod
    def none(cls, n_features: int) -> "Background":
        """Return no background, as in the paper."""
        nothing = np.zeros((n_features, 0), np.float32)
        return cls(np.zeros(n_features, np.float32), nothing, np.zeros(0, np.float32))

    @classmethod
    def of_mean(cls, X: csr_matrix) -> "Background":
        """Return the mean alone."""
        nothing = np.zeros((X.shape[1], 0), np.float32)
        return cls(_mean(X), nothing, np.zeros(0, np.float32))

    @classmethod
    def of_groups(cls, problem: Problem, n_directions: int, seed: int) -> "Background":
        """Return mean and directions, shrunk so as to predict labels of validation groups best."""
        mean = _mean(problem.X)
        if problem.groups.shape[0] < _FEWEST_GROUPS or n_directions == 0:
            return cls.of_mean(problem.X)
        rng = np.random.default_rng(seed)
        judges, rest = np.split(rng.permutation(problem.n_groups), [_n_judges(problem)])
        sums = _Sums.of(problem, mean, rest)
        spread = _Spread.of(sums, n_directions, rng)
        ridge = _best_ridge(sums, spread, _Sums.of(problem, mean, judges))
        if len(judges) > _FEW * len(rest):
            spread = _Spread.of(
                _Sums.of(problem, mean, np.arange(problem.n_groups)), n_directions, rng
            )
        return cls(mean, spread.directions, spread.shrink(ridge))

    def low(self, X: csr_matrix) -> FloatArray:
        """Return the samples' coordinates along the directions, `(n, r)`."""
        return np.asarray(X @ self.directions - self.mean @ self.directions, np.float32)


@dataclass(frozen=True, eq=False)
class _Sums:
    """The sums of some groups' samples, from which the mean is yet to be taken, and labels."""

    sparse: csr_matrix  # (groups, d)
    sizes: FloatArray
    mean: FloatArray  # of a sample
    counts: csr_matrix  # (groups, n_labels)

    @classmethod
    def of(cls, problem: Problem, mean: FloatArray, which: npt.NDArray[np.intp]) -> "_Sums":
        chosen = problem.groups[which]
        sizes = np.diff(chosen.indptr).astype(np.float32)
        return cls(csr_matrix(chosen @ problem.X), sizes, mean, problem.group_labels[which])

    def times(self, table: FloatArray) -> FloatArray:
        return np.asarray(self.sparse @ table - np.outer(self.sizes, self.mean @ table), np.float32)

    def transposed_times(self, table: FloatArray) -> FloatArray:
        return np.asarray(
            self.sparse.T @ table - np.outer(self.mean, self.sizes @ table), np.float32
        )

    def dense(self) -> FloatArray:
        return np.asarray(self.sparse.toarray() - np.outer(self.sizes, self.mean), np.float32)

    def mean_square(self) -> float:
        own, crossed = self.sparse.data @ self.sparse.data, self.sizes @ (self.sparse @ self.mean)
        total = own - 2 * crossed + self.sizes @ self.sizes * (self.mean @ self.mean)
        return float(total) / len(self.sizes)


@dataclass(frozen=True, eq=False)
class _Spread:
    """How the sums of some groups' samples vary: main directions and their squares."""

    directions: FloatArray
    squares: FloatArray
    mean_square: float

    @classmethod
    def of(cls, sums: _Sums, n_directions: int, rng: np.random.Generator) -> "_Spread":
        n_groups, n_features = sums.sparse.shape
        rank = min(n_directions + 8, n_groups - 1, n_features)
        basis = rng.standard_normal((n_features, rank), np.float32)
        for _ in range(2):  # subspace iteration
            basis = np.linalg.qr(sums.transposed_times(sums.times(basis)))[0]
        _, values, right = np.linalg.svd(sums.times(basis), full_matrices=False)
        squares = values[:n_directions] ** 2
        directions = np.ascontiguousarray((basis @ right.T)[:, :n_directions], np.float32)
        return cls(directions, squares.astype(np.float32), sums.mean_square())

    def shrink(self, ridge: float) -> FloatArray:
        """Return each direction's share to shrink by; `ridge` counts mean squares of groups."""
        penalty = ridge * self.mean_square + np.finfo(np.float32).tiny
        return np.asarray(self.squares / (self.squares + penalty), np.float32)


def _best_ridge(sums: _Sums, spread: _Spread, judges: _Sums) -> float:
    """The ridge whose predictions of the judges' counts correlate best with the truth."""
    rates = np.asarray(sums.counts.sum(axis=0)).ravel() / sums.sizes.sum()
    true = judges.counts.toarray() - np.outer(judges.sizes, rates)

    def against_background(table: FloatArray) -> FloatArray:
        """Return products of labels' embeddings (counts above the rate) and columns of `table`."""
        products = sums.times(table)  # (groups, columns)
        return np.asarray(sums.counts.T @ products - np.outer(rates, sums.sizes @ products))

    inputs = judges.dense()
    plain, low = against_background(inputs.T), against_background(spread.directions)
    low_inputs = inputs @ spread.directions

    def agreement(ridge: float) -> float:
        predicted = (plain - (low * spread.shrink(ridge)) @ low_inputs.T).T
        scale = np.linalg.norm(predicted) * np.linalg.norm(true)
        return float((predicted * true).sum() / scale) if scale > 0 else 0.0

    return max(_RIDGES, key=agreement)


def _n_judges(problem: Problem) -> int:
    """Return validation groups: a quarter, or as many as are enough and fit in memory."""
    n_columns = max(*problem.group_labels.shape, problem.X.shape[1])
    return max(1, min(problem.n_groups // 4, _MOST_VALIDATION, _MOST_JUDGEMENTS // n_columns))


def _mean(X: csr_matrix) -> FloatArray:
    sums = np.bincount(X.indices, X.data, X.shape[1])  # in float64: a million samples add up
    return np.asarray(sums / X.shape[0], np.float32)
