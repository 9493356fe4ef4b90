"""Answers: candidates from every tower, scored by all of them and by a companion."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.sparse import csr_matrix

from umpteen.base import ExtremeClassifier, TopK
from umpteen.kernels.nearest import merge_nearest
from umpteen.parallel import run as run_tasks
from umpteen.progress import Verbose, progress_bar
from umpteen.siamese.shortlist import distinct
from umpteen.siamese.tower import FloatArray, IntArray, Tower

_BLOCK = 512


@dataclass(frozen=True)
class Answering:
    """How labels are looked for and scored."""

    towers: list[Tower]
    alpha: float
    n_each: int  # candidates from each search
    companion: ExtremeClassifier | None
    weight: float  # of the towers beside the companion's 1
    n_jobs: int | None
    verbose: Verbose

    def topk(self, X: csr_matrix, k: int) -> TopK:
        """The k best of all candidates."""
        n_each = max(self.n_each, k)
        blocks = range(0, max(1, X.shape[0]), _BLOCK)
        with progress_bar("Predicting", len(blocks), verbose=self.verbose) as bar:
            beside = None if self.companion is None else self.companion.predict_topk(X, n_each)

            def answer(first: int) -> TopK:
                rows = slice(first, first + _BLOCK)
                return self._block(X[rows], k, n_each, None if beside is None else beside[rows])

            parts = run_tasks(answer, blocks, n_jobs=self.n_jobs, done=lambda _: bar.advance())
        return TopK.concatenate(parts)

    def _block(self, X: csr_matrix, k: int, n_each: int, beside: TopK | None) -> TopK:
        if X.shape[0] == 0:
            return TopK(np.zeros((0, k), np.int32), np.zeros((0, k), np.float32))
        views = [_View.of(tower, X) for tower in self.towers]
        found = [view.tower.shortlist(view.bags, view.lifted, n_each) for view in views]
        if beside is not None:
            found.append(beside.labels)
        candidates = distinct(np.concatenate(found, axis=1))
        scores = np.mean([view.scores(candidates, self.alpha) for view in views], axis=0)
        if beside is not None:
            share = np.float32(1 / (1 + self.weight))
            own = looked_up(beside.labels, beside.scores, candidates)
            scores = share * own + (1 - share) * scores
        return TopK(*merge_nearest(candidates, scores.astype(np.float32), k))


@dataclass(frozen=True, eq=False)
class _View:
    """Samples as one tower sees them."""

    tower: Tower
    bags: FloatArray
    lifted: FloatArray

    @classmethod
    def of(cls, tower: Tower, X: csr_matrix) -> "_View":
        bags = tower.encoder.bags(X)
        return cls(tower, bags, tower.encoder.lift(bags))

    def scores(self, candidates: IntArray, alpha: float) -> FloatArray:
        return self.tower.scores(self.bags, self.lifted, candidates, alpha)


@njit(nogil=True, cache=True)
def looked_up(labels: Any, scores: Any, candidates: Any) -> npt.NDArray[np.float32]:
    """The scores that candidates (n, any) have in an answer (n, k); 0 where they are not in it."""
    found = np.zeros(candidates.shape, np.float32)
    for row in range(candidates.shape[0]):
        order = np.argsort(labels[row])
        ordered = labels[row][order]
        for place in range(candidates.shape[1]):
            label = candidates[row, place]
            where = np.searchsorted(ordered, label)
            if label >= 0 and where < len(ordered) and ordered[where] == label:
                found[row, place] = scores[row, order[where]]
    return found
