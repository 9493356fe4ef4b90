"""How far the noise tree is held back at each level: as far as unseen samples like it best."""

import numpy as np
import numpy.typing as npt

from umpteen.kernels.noise_fit import ClassSamples, class_sums, decision_likelihood
from umpteen.progress import Bar
from umpteen.softmax.growing import IntArray, Level, depth_of, fit_level, halved

GRID = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_FIRST, _UNKNOWN = GRID.index(300.0), GRID.index(1.0)
_HELD_OUT = 0.2
_ENOUGH_SAMPLES = 50_000  # and
_ENOUGH_NODES = 8  # of a level, to tell which value is the best


def choose_regularizers(
    samples: ClassSamples, seed: int, n_jobs: int | None, bar: Bar
) -> npt.NDArray[np.float64]:
    """Of each level, the one of `GRID` that gives held-out samples the largest likelihood.

    A fifth of the samples is held out. Each level is fitted to the others along its first split
    (one round tells as much about the value as twenty do, in half the time), with the value of
    the level above first, then with its neighbours in the grid for as long as they are better; the
    levels below go on from the best. Some three to four fits for each level, where of many nodes
    only some are fitted, and below only theirs: with millions of samples, what counts is the time
    for the first levels.
    """
    random = np.random.default_rng(seed)
    seen, unseen = hold_out(samples, random)
    n_classes = len(samples.start) - 1
    order, bounds = np.arange(n_classes), np.array([0, n_classes])
    best = _FIRST if len(unseen.rows) else _UNKNOWN
    chosen = []
    for _ in range(depth_of(n_classes)):
        best, level = _best_level(seen, unseen, order, bounds, best, n_jobs)
        chosen.append(GRID[best])
        order, bounds = some_nodes(seen, level.order, halved(bounds, level.n_left), random)
        bar.advance()
    return np.array(chosen, np.float64)


def hold_out(
    samples: ClassSamples, random: np.random.Generator
) -> tuple[ClassSamples, ClassSamples]:
    """Four fifths and one fifth of the samples, at random; each class keeps one of the former."""
    sizes = np.diff(samples.start)
    lot = random.random(len(samples.rows))
    last = np.lexsort((lot, np.repeat(np.arange(len(sizes)), sizes)))[samples.start[1:] - 1]
    held = lot < _HELD_OUT
    held[last[sizes > 0]] = False
    return _part(samples, ~held), _part(samples, held)


def some_nodes(
    samples: ClassSamples, order: IntArray, bounds: IntArray, random: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """`order` and `bounds` of nodes drawn until there are enough, and enough samples in them."""
    sizes = np.diff(samples.start)[order]
    drawn = random.permutation(len(bounds) - 1)
    reached = np.cumsum(np.add.reduceat(sizes, bounds[:-1])[drawn])
    n_enough = max(int(np.searchsorted(reached, _ENOUGH_SAMPLES)) + 1, _ENOUGH_NODES)
    kept = np.sort(drawn[:n_enough])
    widths = np.diff(bounds)
    chosen = np.repeat(np.isin(np.arange(len(widths)), kept), widths)
    return order[chosen], np.concatenate([[0], np.cumsum(widths[kept])])


def _part(samples: ClassSamples, chosen: npt.NDArray[np.bool_]) -> ClassSamples:
    rows = samples.rows[chosen]
    start = np.concatenate([[0], np.cumsum(chosen)])[samples.start]
    return ClassSamples(rows, start, class_sums(rows, start))


def _best_level(
    seen: ClassSamples,
    unseen: ClassSamples,
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
            level = fit_level(seen, order, bounds, GRID[i], 1, n_jobs)
            value = decision_likelihood(unseen, level.order, bounds, level.n_left, level.thetas)
            tried[i] = float(value), level
        return tried[i][0]

    best = first
    for step in (1, -1):
        while likelihood(best + step) > likelihood(best):
            best += step
    return best, tried[best][1]
