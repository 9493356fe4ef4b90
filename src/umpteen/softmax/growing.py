"""Grow the noise tree greedily from the root, level by level (Section 3 of the paper)."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_matrix, csr_matrix

from umpteen import parallel
from umpteen.kernels.noise_fit import ClassSamples, class_sums, fit_nodes
from umpteen.kernels.noise_tree import NoiseArrays
from umpteen.progress import Bar

_TASKS = 64  # per level at the most
_NODE_WORK = 30  # a node takes as long as so many more samples

IntArray = npt.NDArray[np.int64]


class Growth(NamedTuple):
    """A grown tree, and how it went."""

    arrays: NoiseArrays
    log_likelihood: float  # of all samples
    n_rounds: npt.NDArray[np.int32]  # alternations of each node, by its number


def samples_by_class(rows: npt.NDArray[np.float32], labels: csr_matrix) -> ClassSamples:
    """Reduced `rows` in the order of their classes; a row with two labels stands there twice."""
    by_class = csc_matrix(labels)
    ordered, start = rows[by_class.indices], by_class.indptr.astype(np.int64)
    return ClassSamples(ordered, start, class_sums(ordered, start))


def depth_of(n_classes: int) -> int:
    """Levels of nodes above as many leaves as there are classes or more.

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
    total = 0.0
    for level, regularizer in enumerate(regularizers):
        fitted = fit_level(samples, order, bounds, float(regularizer), max_rounds, n_jobs)
        nodes = slice(2**level, 2 ** (level + 1))
        thetas[nodes], n_rounds[nodes] = fitted.thetas, fitted.n_rounds
        total += float(fitted.likelihoods.sum())
        order, bounds = fitted.order, halved(bounds, fitted.n_left)
        bar.advance()
    return Growth(_as_arrays(thetas, order, bounds), total, n_rounds)


class Level(NamedTuple):
    """What `fit_nodes` returns, for all nodes of a level."""

    order: IntArray  # of classes, by node, those that go left first
    n_left: IntArray
    thetas: npt.NDArray[np.float64]
    likelihoods: npt.NDArray[np.float64]
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

    def fit(nodes: tuple[int, int]) -> tuple[npt.NDArray, ...]:
        own = bounds[nodes[0] : nodes[1] + 1]
        classes = order[own[0] : own[-1]]
        return fit_nodes(  # type: ignore[no-any-return]
            samples, classes, own - own[0], regularizer, max_rounds
        )

    sizes = np.diff(samples.start)[order]
    parts = parallel.run(fit, _shares(sizes, bounds), n_jobs=n_jobs)
    return Level(*map(np.concatenate, zip(*parts, strict=True)))


def _shares(sizes: IntArray, bounds: IntArray) -> list[tuple[int, int]]:
    """Nodes from first to before last that take about as long together as others do."""
    work = np.add.reduceat(sizes, bounds[:-1]) + _NODE_WORK
    share = (np.cumsum(work) - work) * _TASKS // work.sum()
    cuts = np.flatnonzero(np.diff(share)) + 1
    return list(pairwise([0, *cuts.tolist(), len(work)]))


def halved(bounds: IntArray, n_left: IntArray) -> IntArray:
    """Bounds of the next level's nodes."""
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
