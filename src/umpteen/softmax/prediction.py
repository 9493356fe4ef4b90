"""Answers of a linear softmax: exact, by blocks of rows, or among the noise tree's candidates."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from umpteen import parallel
from umpteen.base import TopK
from umpteen.kernels.noise_tree import beam_topk
from umpteen.kernels.topk import finite_topk
from umpteen.softmax.noise import Noise
from umpteen.softmax.weights import DenseScores, SparseScores
from umpteen.validation import Features

_BLOCK_SCORES = 2**21  # of all classes, held at a time by each thread
_BLOCK_ROWS = 512

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Answers:
    """What a trained model says.

    `corrected` adds the noise's log-probability to each score, which makes them those of a softmax
    (Eq. 5); only classes that were `seen` in training are answered.
    """

    model: DenseScores | SparseScores
    noise: Noise
    seen: npt.NDArray[np.bool_]
    corrected: bool
    n_jobs: int | None

    def table(self, X: Features) -> FloatArray:
        """Log-probabilities of all classes, `(n, n_classes)`; -inf for those never seen."""
        scores = self.model.table(X)
        if self.corrected:
            scores += self.noise.log_prob_table(self.noise.reduce(X))
        scores[:, ~self.seen] = -np.inf
        return _log_softmax(scores)

    def exact(self, X: Features, k: int) -> TopK:
        """The `k` most probable classes."""
        size = max(1, min(_BLOCK_ROWS, _BLOCK_SCORES // len(self.seen)))
        return self._by_rows(X, size, lambda rows: finite_topk(self.table(rows), k))

    def among_candidates(self, X: Features, k: int, beam_width: int) -> TopK:
        """The best of the classes that a beam through the tree finds; O(log(n_classes)) each."""
        return self._by_rows(X, _BLOCK_ROWS, lambda rows: self._candidates(rows, k, beam_width))

    def log_proba(self, X: Features, labels: IntArray) -> FloatArray:
        """Log-probabilities of given classes, `(n, m)`."""
        size = max(1, min(_BLOCK_ROWS, _BLOCK_SCORES // len(self.seen)))
        starts = range(0, X.shape[0], size)

        def block(first: int) -> FloatArray:
            rows = slice(first, first + size)
            return np.take_along_axis(self.table(X[rows]), labels[rows].astype(np.int64), axis=1)

        with parallel.one_thread_each:
            parts = parallel.run(block, starts, n_jobs=self.n_jobs)
        return np.concatenate([np.empty((0, labels.shape[1]), np.float32), *parts])

    def _candidates(self, X: Features, k: int, beam_width: int) -> tuple[IntArray, FloatArray]:
        tree, reduced = self.noise.arrays.tree, self.noise.reduce(X)
        width = min(max(k, beam_width), max(1, len(tree.label_of) // 2))
        labels, _ = beam_topk(tree, reduced, 2 * width, width)
        labels = np.where((labels >= 0) & self.seen[labels], labels, -1)
        scores = self.model.of_pairs(X, labels)
        if self.corrected:
            scores += self.noise.log_prob(reduced, np.maximum(labels, 0))
        return _best(labels, _log_softmax(scores), k)

    def _by_rows(self, X: Features, size: int, answer: Callable[[Features], Any]) -> TopK:
        starts = range(0, max(X.shape[0], 1), size)  # no rows are one empty block

        def block(first: int) -> TopK:
            labels, logs = answer(X[first : first + size])
            return TopK(labels, np.where(labels < 0, -np.inf, np.exp(logs)))

        with parallel.one_thread_each:
            return TopK.concatenate(parallel.run(block, starts, n_jobs=self.n_jobs))


def _log_softmax(scores: FloatArray) -> FloatArray:
    """In place; a row of which nothing was seen stays -inf."""
    best = scores.max(axis=1, keepdims=True)
    scores -= np.where(best == -np.inf, 0, best)
    scores -= np.log(np.maximum(np.exp(scores).sum(axis=1, keepdims=True), 1))
    return scores


def _best(labels: IntArray, scores: FloatArray, k: int) -> tuple[IntArray, Any]:
    """The `k` best of each row's candidates; equal scores stand by label."""
    order = np.lexsort((labels, -scores), axis=1)[:, :k]
    chosen, values = (np.take_along_axis(each, order, axis=1) for each in (labels, scores))
    missing = k - chosen.shape[1]
    if missing > 0:
        chosen = np.pad(chosen, ((0, 0), (0, missing)), constant_values=-1)
        values = np.pad(values, ((0, 0), (0, missing)), constant_values=-np.inf)
    return np.where(values == -np.inf, -1, chosen).astype(np.int32), values
