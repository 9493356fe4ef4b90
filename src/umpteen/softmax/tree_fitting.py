"""Fit the noise tree greedily from the root, level by level (Section 3 of the paper).

The regulariser of each level is the one with the largest likelihood on a validation split.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_matrix, csr_matrix

from umpteen import parallel
from umpteen.kernels.noise_fit import (
    ClassSamples,
    Effort,
    class_sums,
    decision_likelihood,
    fit_nodes,
)
from umpteen.kernels.noise_tree import NoiseArrays
from umpteen.progress import Bar

_TASKS = 64  # per level at the most
_NODE_WORK = 30  # a node takes as long as so many more samples
GRID = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_START, _START_WITHOUT_VALIDATION = GRID.index(300.0), GRID.index(1.0)
_VALIDATION_SHARE = 0.2
_TOLERANCE = 1e-4  # of a node's objective
_MOST_ROWS = 16_384  # by which a node is fitted
_ENOUGH_SAMPLES = 10_000  # and
_ENOUGH_NODES = 8  # of a level, to tell which value is the best

IntArray = npt.NDArray[np.int64]


class Growth(NamedTuple):
    """A grown tree, and how it went."""

    arrays: NoiseArrays
    n_rounds: npt.NDArray[np.int32]  # alternations of each node, by its number


def samples_by_class(rows: npt.NDArray[np.float32], labels: csr_matrix) -> ClassSamples:
    """Return reduced `rows` in the order of their classes; a row with two labels comes twice."""
    by_class = csc_matrix(labels)
    ordered, start = rows[by_class.indices], by_class.indptr.astype(np.int64)
    return ClassSamples(ordered, start, class_sums(ordered, start))


def depth_of(n_classes: int) -> int:
    """Return levels of nodes above as many leaves as there are classes or more.

    >>> [depth_of(n) for n in (1, 2, 3, 4, 5)]
    [0, 1, 2, 2, 3]
    """
    return (n_classes - 1).bit_length()


def grow(
    samples: ClassSamples,
    regularizers: npt.NDArray[np.float64],
    max_rounds: int,
    n_jobs: int | None,
    bar: Bar,
) -> Growth:
    """Halve the classes, and their halves, until every class has a leaf of its own.

    Halves differ by one class at most, so leaves without a class are all on the last level, the
    left one of a pair. `regularizers`: of each level.
    """
    n_classes, dim = len(samples.start) - 1, samples.rows.shape[1]
    depth = depth_of(n_classes)
    thetas = np.zeros((2**depth, dim + 1), np.float32)
    n_rounds = np.zeros(2**depth, np.int32)
    order, bounds = np.arange(n_classes), np.array([0, n_classes])
    for level, regularizer in enumerate(regularizers):
        fitted = fit_level(samples, order, bounds, float(regularizer), max_rounds, n_jobs)
        nodes = slice(2**level, 2 ** (level + 1))
        thetas[nodes], n_rounds[nodes] = fitted.thetas, fitted.n_rounds
        order, bounds = fitted.order, halved(bounds, fitted.n_left)
        bar.advance()
    return Growth(_as_arrays(thetas, order, bounds), n_rounds)


class Level(NamedTuple):
    """What `fit_nodes` returns, for all nodes of a level."""

    order: IntArray  # of classes, by node, those that go left first
    n_left: IntArray
    thetas: npt.NDArray[np.float64]
    n_rounds: npt.NDArray[np.int32]


def fit_level(
    samples: ClassSamples,
    order: IntArray,
    bounds: IntArray,
    regularizer: float,
    max_rounds: int,
    n_jobs: int | None,
) -> Level:
    """Fit the nodes of a level; node i has the classes `order[bounds[i]:bounds[i + 1]]`."""
    effort = Effort(max_rounds, _TOLERANCE, _MOST_ROWS)

    def fit(nodes: tuple[int, int]) -> tuple[npt.NDArray, ...]:
        own = bounds[nodes[0] : nodes[1] + 1]
        classes = order[own[0] : own[-1]]
        return fit_nodes(  # type: ignore[no-any-return]
            samples, classes, own - own[0], regularizer, effort
        )

    sizes = np.diff(samples.start)[order]
    fitted = parallel.run(fit, _shares(sizes, bounds), n_jobs=n_jobs)
    return Level(*map(np.concatenate, zip(*fitted, strict=True)))


def _shares(sizes: IntArray, bounds: IntArray) -> list[tuple[int, int]]:
    """Cut the nodes into ranges (first, after last) that take about equally long."""
    work = np.add.reduceat(sizes, bounds[:-1]) + _NODE_WORK
    share = (np.cumsum(work) - work) * _TASKS // work.sum()
    cuts = np.flatnonzero(np.diff(share)) + 1
    return list(pairwise([0, *cuts.tolist(), len(work)]))


def halved(bounds: IntArray, n_left: IntArray) -> IntArray:
    """Return bounds of the next level's nodes."""
    halves = np.empty(2 * len(n_left) + 1, np.int64)
    halves[::2], halves[1::2] = bounds, bounds[:-1] + n_left
    return halves


def _as_arrays(thetas: npt.NDArray[np.float32], order: IntArray, bounds: IntArray) -> NoiseArrays:
    """After the last level, each node's bounds hold one class or none."""
    leaves = np.flatnonzero(np.diff(bounds))
    label_of = np.full(len(thetas), -1, np.int32)
    label_of[leaves] = order
    leaf_of = np.empty(len(order), np.int32)
    leaf_of[order] = leaves
    return NoiseArrays(
        np.ascontiguousarray(thetas[:, :-1]), thetas[:, -1].copy(), label_of, leaf_of
    )


def choose_regularizers(
    samples: ClassSamples, seed: int, n_jobs: int | None, bar: Bar
) -> npt.NDArray[np.float64]:
    """Choose for each level the one of `GRID` of largest likelihood on the validation split.

    That is a fifth of the samples. Each level is fitted to the others along its first split
    (one round tells as much about the value as twenty do, in half the time), with the value of
    the level above first, then with smaller ones for as long as they are better, or else larger
    ones; the levels below go on from the best. Some three fits for each level, where of many nodes
    only some are fitted, and below only theirs.
    """
    random = np.random.default_rng(seed)
    training, validation = split_samples(samples, random)
    n_classes = len(samples.start) - 1
    order, bounds = np.arange(n_classes), np.array([0, n_classes])
    best = _START if len(validation.rows) else _START_WITHOUT_VALIDATION
    chosen = []
    for _ in range(depth_of(n_classes)):
        best, level = _best_level(training, validation, order, bounds, best, n_jobs)
        chosen.append(GRID[best])
        order, bounds = some_nodes(training, level.order, halved(bounds, level.n_left), random)
        bar.advance()
    return np.array(chosen, np.float64)


def split_samples(
    samples: ClassSamples, random: np.random.Generator
) -> tuple[ClassSamples, ClassSamples]:
    """Return training and validation samples; each class keeps one of the former."""
    sizes = np.diff(samples.start)
    lot = random.random(len(samples.rows))
    last = np.lexsort((lot, np.repeat(np.arange(len(sizes)), sizes)))[samples.start[1:] - 1]
    chosen = lot < _VALIDATION_SHARE
    chosen[last[sizes > 0]] = False
    return _subset(samples, ~chosen), _subset(samples, chosen)


def some_nodes(
    samples: ClassSamples, order: IntArray, bounds: IntArray, random: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Return `order` and `bounds` of nodes drawn until they and their samples are enough."""
    sizes = np.diff(samples.start)[order]
    drawn = random.permutation(len(bounds) - 1)
    reached = np.cumsum(np.add.reduceat(sizes, bounds[:-1])[drawn])
    n_enough = max(int(np.searchsorted(reached, _ENOUGH_SAMPLES)) + 1, _ENOUGH_NODES)
    kept = np.sort(drawn[:n_enough])
    widths = np.diff(bounds)
    chosen = np.repeat(np.isin(np.arange(len(widths)), kept), widths)
    return order[chosen], np.concatenate([[0], np.cumsum(widths[kept])])


def _subset(samples: ClassSamples, chosen: npt.NDArray[np.bool_]) -> ClassSamples:
    rows = samples.rows[chosen]
    start = np.concatenate([[0], np.cumsum(chosen)])[samples.start]
    return ClassSamples(rows, start, class_sums(rows, start))


def _best_level(
    training: ClassSamples,
    validation: ClassSamples,
    order: IntArray,
    bounds: IntArray,
    first: int,
    n_jobs: int | None,
) -> tuple[int, Level]:
    tried: dict[int, tuple[float, Level]] = {}

    def likelihood(i: int) -> float:
        if not 0 <= i < len(GRID):
            return -np.inf
        if i not in tried:
            level = fit_level(training, order, bounds, GRID[i], 1, n_jobs)
            value = decision_likelihood(validation, level.order, bounds, level.n_left, level.thetas)
            tried[i] = float(value), level
        return tried[i][0]

    best = first
    for step in (-1, 1):
        while likelihood(best + step) > likelihood(best):
            best += step
    return best, tried[best][1]
