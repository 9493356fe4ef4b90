"""Answers of a linear softmax: exact, by blocks of rows, or among the noise tree's candidates."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from umpteen import parallel
from umpteen.base import TopK
from umpteen.kernels.noise_tree import beam_topk
from umpteen.kernels.topk import finite_topk
from umpteen.softmax.noise import Noise
from umpteen.softmax.noise_tree import NoiseTree
from umpteen.softmax.weights import DenseScores, SparseScores
from umpteen.validation import Features

_BLOCK_SCORES = 2**21  # of all classes, held at a time by each thread
_BLOCK_ROWS = 512

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


class Calibration(NamedTuple):
    """p(y|x) is proportional to exp(sharpness * s + bend * bent(s) + prior * log(count of y)).

    With `bend` above 0, differences between large scores s count less than those near 0. One
    temperature cannot do both: let thousands of classes without evidence share little probability,
    and not be too sure of the few with much of it.
    """

    sharpness: float = 1.0  # one over the temperature
    prior: float = 0.0
    bend: float = 0.0


def bent(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the logarithm of one plus the size of each score, with the score's sign."""
    return np.asarray(np.copysign(np.log1p(np.abs(scores)), scores))


NOT_CALIBRATED = Calibration()


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of a trained model.

    `corrected` adds the noise's log-probability to each score, which makes them those of a softmax
    (Eq. 5). Answers are classes that have training samples, by `counts`. To rank
    classes, `discount` times the logarithm of its count is taken from each one's calibrated score.
    """

    model: DenseScores | SparseScores
    noise: Noise
    counts: npt.NDArray[np.int64]
    corrected: bool
    discount: float
    n_jobs: int | None
    calibration: Calibration = NOT_CALIBRATED

    @cached_property
    def log_counts(self) -> FloatArray:
        """The logarithm of how often each class occurs, of 1 where it never does."""
        return np.log(np.maximum(self.counts, 1)).astype(np.float32)

    def table(self, X: Features) -> FloatArray:
        """Return log-probabilities of all classes, `(n, n_classes)`; -inf for those never seen."""
        scores = self._calibrated(self.scores(X), self.log_counts)
        scores[:, self.counts == 0] = -np.inf
        return _log_softmax(scores)

    def scores(self, X: Features) -> FloatArray:
        """Return the scores of all classes before they are calibrated, `(n, n_classes)`."""
        scores = self.model.table(X)
        if self.corrected:
            scores += self.noise.log_prob_table(self.noise.reduce(X))
        return scores

    def exact(self, X: Features, k: int) -> TopK:
        """Return the `k` best of all classes."""
        return self._by_rows(X, self.block, lambda rows: finite_topk(self._ranking(rows), k))

    def best_by_discount(self, X: Features, discounts: Sequence[float]) -> IntArray:
        """Return the best class of each sample, for each of several discounts: (discounts, n)."""

        def block(first: int) -> IntArray:
            table = self.table(X[first : first + self.block])
            found = [(table - value * self.log_counts).argmax(axis=1) for value in discounts]
            return np.stack(found).astype(np.int32)

        with parallel.one_thread_each:
            starts = range(0, X.shape[0], self.block)
            return np.concatenate(parallel.run(block, starts, n_jobs=self.n_jobs), axis=1)

    def among_candidates(self, X: Features, k: int, beam_width: int) -> TopK:
        """Return the best classes that a beam through the tree finds; O(log(n_classes)) each."""
        return self._by_rows(X, _BLOCK_ROWS, lambda rows: self._candidates(rows, k, beam_width))

    def log_proba(self, X: Features, labels: IntArray) -> FloatArray:
        """Return log-probabilities of given classes, `(n, m)`."""
        starts = range(0, X.shape[0], self.block)

        def block(first: int) -> FloatArray:
            rows = slice(first, first + self.block)
            return np.take_along_axis(self.table(X[rows]), labels[rows].astype(np.int64), axis=1)

        with parallel.one_thread_each:
            blocks = parallel.run(block, starts, n_jobs=self.n_jobs)
        return np.concatenate([np.empty((0, labels.shape[1]), np.float32), *blocks])

    def _calibrated(self, scores: FloatArray, log_counts: FloatArray) -> FloatArray:
        """Calibrate scores in place; models of earlier versions keep their bits."""
        if self.calibration == NOT_CALIBRATED:
            return scores
        sharpness, prior, bend = map(np.float32, self.calibration)
        curve = bend * bent(scores) if bend else np.float32(0)
        scores *= sharpness
        scores += prior * log_counts
        scores += curve
        return scores

    @property
    def block(self) -> int:
        """Return how many samples' scores of all classes are held at a time."""
        return max(1, min(_BLOCK_ROWS, _BLOCK_SCORES // len(self.counts)))

    def _ranking(self, X: Features) -> FloatArray:
        if self.discount == 0:
            return self.table(X)
        return _log_softmax(self.table(X) - self.discount * self.log_counts)

    def _candidates(self, X: Features, k: int, beam_width: int) -> tuple[IntArray, FloatArray]:
        tree, reduced = cast(NoiseTree, self.noise.tree).arrays, self.noise.reduce(X)
        width = min(max(k, beam_width), max(1, len(tree.label_of) // 2))
        labels, _ = beam_topk(tree, reduced, 2 * width, width)
        labels = np.where((labels >= 0) & (self.counts[labels] > 0), labels, -1)
        scores = self.model.of_pairs(X, labels)
        if self.corrected:
            scores += self.noise.log_prob(reduced, np.maximum(labels, 0))
        scores = self._calibrated(scores, self.log_counts[labels])
        scores -= self.discount * self.log_counts[labels]
        return _best(labels, _log_softmax(scores), k)

    def _by_rows(self, X: Features, size: int, answer: Callable[[Features], Any]) -> TopK:
        starts = range(0, max(X.shape[0], 1), size)  # no rows are one empty block

        def block(first: int) -> TopK:
            labels, logs = answer(X[first : first + size])
            return TopK(labels, np.where(labels < 0, -np.inf, np.exp(logs)))

        with parallel.one_thread_each:
            return TopK.concatenate(parallel.run(block, starts, n_jobs=self.n_jobs))


def _log_softmax(scores: FloatArray) -> FloatArray:
    """Normalise scores in place; a row that is all -inf stays so."""
    best = scores.max(axis=1, keepdims=True)
    scores -= np.where(best == -np.inf, 0, best)
    scores -= np.log(np.maximum(np.exp(scores).sum(axis=1, keepdims=True), 1))
    return scores


def _best(labels: IntArray, scores: FloatArray, k: int) -> tuple[IntArray, Any]:
    """Return the `k` best of each row's candidates; ties go to the lowest label."""
    order = np.lexsort((labels, -scores), axis=1)[:, :k]
    chosen, values = (np.take_along_axis(each, order, axis=1) for each in (labels, scores))
    missing = k - chosen.shape[1]
    if missing > 0:
        chosen = np.pad(chosen, ((0, 0), (0, missing)), constant_values=-1)
        values = np.pad(values, ((0, 0), (0, missing)), constant_values=-np.inf)
    return np.where(values == -np.inf, -1, chosen).astype(np.int32), values
