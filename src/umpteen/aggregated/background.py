"""What all samples have in common, so that a label's embedding can stand against it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.aggregated.problem import Problem

FloatArray = npt.NDArray[np.float32]
_RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_MOST_JUDGED = 500  # groups that judge a ridge, each by all labels,
_MOST_JUDGEMENTS = 20_000_000  # or fewer, so that memory stays bounded
_FEWEST_GROUPS = 20  # with fewer, directions and their judge would be chance


@dataclass(frozen=True, eq=False)
class Background:
    """The samples' mean, and directions in which groups differ anyway.

    An embedding that is a sum over groups, most of whose samples have nothing to do with the
    label, points at the average sample, and beyond that along the main directions of the
    groups' sums. So similarity is measured with the mean taken off and with these directions
    shrunk: <x - mean, e> becomes <x - mean, e> - sum of `shrink` * (x - mean, u) * (e, u). That
    is ridge regression of the groups' labels on the groups' sums, exact along the directions
    that are there: the use of negative groups that the paper asks for in its conclusion.
    """

    mean: FloatArray  # (d,)
    directions: FloatArray  # (d, r)
    shrink: FloatArray  # (r,)

    @classmethod
    def none(cls, n_features: int) -> "Background":
        """As the paper has it."""
        nothing = np.zeros((n_features, 0), np.float32)
        return cls(np.zeros(n_features, np.float32), nothing, np.zeros(0, np.float32))

    @classmethod
    def of_mean(cls, X: csr_matrix) -> "Background":
        """The mean alone."""
        nothing = np.zeros((X.shape[1], 0), np.float32)
        return cls(_mean(X), nothing, np.zeros(0, np.float32))

    @classmethod
    def of_groups(cls, problem: Problem, n_directions: int, seed: int) -> "Background":
        """Mean and directions, shrunk as much as predicts the labels of held-out groups best."""
        mean = _mean(problem.X)
        if problem.groups.shape[0] < _FEWEST_GROUPS or n_directions == 0:
            return cls.of_mean(problem.X)
        rng = np.random.default_rng(seed)
        held_out = np.zeros(problem.groups.shape[0], bool)
        held_out[rng.permutation(len(held_out))[: len(held_out) // 4]] = True
        ridge = _best_ridge(problem, mean, held_out, n_directions, rng)
        spread = _Spread.of(problem, mean, np.ones(len(held_out), bool), n_directions, rng)
        return cls(mean, spread.directions, spread.shrink(ridge))

    def low(self, X: csr_matrix) -> FloatArray:
        """The samples' parts along the directions, `(n, r)`."""
        return np.asarray(X @ self.directions - self.mean @ self.directions, np.float32)


@dataclass(frozen=True, eq=False)
class _Spread:
    """How the sums of some groups' samples vary: main directions and their squares."""

    directions: FloatArray
    squares: FloatArray
    mean_square: float

    @classmethod
    def of(
        cls,
        problem: Problem,
        mean: FloatArray,
        which: npt.NDArray[np.bool_],
        n_directions: int,
        rng: np.random.Generator,
    ) -> "_Spread":
        sums, sizes = _group_sums(problem, which)
        rank = min(n_directions + 16, len(sizes) - 1, sums.shape[1])
        basis = rng.standard_normal((sums.shape[1], rank), np.float32)
        for _ in range(3):  # subspace iteration
            basis = np.linalg.qr(_times(sums, sizes, mean, basis))[0]
            basis = np.linalg.qr(sums.T @ basis - np.outer(mean, sizes @ basis))[0]
        _, values, right = np.linalg.svd(_times(sums, sizes, mean, basis), full_matrices=False)
        squares = values[:n_directions] ** 2
        directions = np.ascontiguousarray((basis @ right.T)[:, :n_directions], np.float32)
        total = sums.multiply(sums).sum() - 2 * sizes @ (sums @ mean) + sizes @ sizes * mean @ mean
        return cls(directions, squares.astype(np.float32), float(total) / len(sizes))

    def shrink(self, ridge: float) -> FloatArray:
        """By which share each direction shrinks; `ridge` is in units of a group's mean square."""
        penalty = ridge * self.mean_square + np.finfo(np.float32).tiny
        return np.asarray(self.squares / (self.squares + penalty), np.float32)


def _best_ridge(
    problem: Problem,
    mean: FloatArray,
    held_out: npt.NDArray[np.bool_],
    n_directions: int,
    rng: np.random.Generator,
) -> float:
    """The ridge whose predictions of held-out groups' counts correlate best with the truth."""
    spread = _Spread.of(problem, mean, ~held_out, n_directions, rng)
    sums, sizes = _group_sums(problem, ~held_out)
    counts = problem.group_labels[~held_out]
    rates = np.asarray(counts.sum(axis=0)).ravel() / sizes.sum()
    judges = np.flatnonzero(held_out)[
        : min(_MOST_JUDGED, _MOST_JUDGEMENTS // max(*counts.shape, sums.shape[1]))
    ]
    judged, judged_sizes = _group_sums(problem, np.isin(np.arange(len(held_out)), judges))
    inputs = judged.toarray() - np.outer(judged_sizes, mean)
    true = problem.group_labels[judges].toarray() - np.outer(judged_sizes, rates)

    def against_background(table: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Products of the labels' embeddings (counts above the rate) with columns of `table`."""
        parts = sums @ table - np.outer(sizes, mean @ table)  # (groups, columns)
        return np.asarray(counts.T @ parts - np.outer(rates, sizes @ parts))

    plain, low = against_background(inputs.T), against_background(spread.directions)
    low_inputs = inputs @ spread.directions

    def agreement(ridge: float) -> float:
        predicted = (plain - (low * spread.shrink(ridge)) @ low_inputs.T).T
        scale = np.linalg.norm(predicted) * np.linalg.norm(true)
        return float((predicted * true).sum() / scale) if scale > 0 else 0.0

    return max(_RIDGES, key=agreement)


def _group_sums(
    problem: Problem, which: npt.NDArray[np.bool_]
) -> tuple[csr_matrix, npt.NDArray[np.float32]]:
    chosen = problem.groups[which]
    return csr_matrix(chosen @ problem.X), np.diff(chosen.indptr).astype(np.float32)


def _times(
    sums: csr_matrix, sizes: FloatArray, mean: FloatArray, table: FloatArray
) -> npt.NDArray[np.float32]:
    """Sums with the mean taken off, times a table."""
    return np.asarray(sums @ table - np.outer(sizes, mean @ table), np.float32)


def _mean(X: csr_matrix) -> FloatArray:
    sums = np.bincount(X.indices, X.data, X.shape[1])  # in float64: a million samples add up
    return np.asarray(sums / X.shape[0], np.float32)
