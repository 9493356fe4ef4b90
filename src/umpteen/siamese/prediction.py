"""Answers: candidates from every tower and a companion, scored by all that is known of them."""

from collections.abc import Iterator
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
from umpteen.siamese.boosted_judge import BoostedJudge
from umpteen.siamese.known import Known
from umpteen.siamese.quadratic_judge import QuadraticJudge
from umpteen.siamese.shortlist import distinct
from umpteen.siamese.tower import FloatArray, IntArray, Tower
from umpteen.validation import as_csr, unit_rows

Judge = QuadraticJudge | BoostedJudge
_BLOCK = 512
_LEAST = np.float32(1e-3)  # a companion's score whose logarithm stands for none


@dataclass(frozen=True)
class Mixture:
    """Scores by fixed weights: the paper's `alpha`, and `weight` of towers beside a companion."""

    alpha: float
    weight: float

    def scores(self, signs: "Signs") -> FloatArray:
        """alpha * own vector + (1 - alpha) * mean of text and centroid, and the companion's."""
        own, text, centroid = signs.cosines
        mean = np.float32(0.5) * (text + centroid)
        mixed = np.float32(self.alpha) * own + np.float32(1 - self.alpha) * mean
        if signs.beside is not None:
            share = np.float32(1 / (1 + self.weight))
            mixed = share * signs.beside.scores + (1 - share) * mixed
        return np.asarray(mixed, np.float32)


@dataclass(frozen=True, eq=False)
class Judgement:
    """Scores by a judge: the chance of each label, times what a hit on it is worth.

    Beside a companion, the geometric mean of the chance and of its score: a judge of few samples
    has seen few rare labels; where both agree, both are more often right. Where the companion
    knows nothing, the judge decides alone.
    """

    judge: Judge
    worth: FloatArray | None  # (n_labels,); None: all the same

    def scores(self, signs: "Signs") -> FloatArray:
        """Of each candidate."""
        chances = self.judge.chances(signs.together())
        if signs.beside is not None:
            both = np.sqrt(chances * np.maximum(signs.beside.scores, _LEAST))
            chances = np.where(signs.beside.is_strange, chances, both)
        return chances if self.worth is None else chances * self.worth[signs.candidates]


@dataclass(frozen=True, eq=False)
class Signs:
    """What speaks for each candidate; all are (n, candidates), without a candidate (-1) 0."""

    candidates: IntArray
    cosines: FloatArray  # (3, n, candidates): own vector, text, centroid; means over towers
    words: FloatArray  # cosine of the features themselves and the label's
    counts: FloatArray  # ln(1 + number of samples); any number without a candidate
    beside: "Beside | None"

    def together(self) -> FloatArray:
        """(n, candidates, signs)."""
        parts = [*self.cosines, self.words, self.counts]
        if self.beside is not None:
            theirs = self.beside.scores
            parts += [theirs, np.log(np.maximum(theirs, 0) + _LEAST)]
        return np.stack(parts, axis=-1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Beside:
    """What a companion says of candidates."""

    scores: FloatArray
    is_strange: npt.NDArray[np.bool_]  # added after it was trained, or without samples


@dataclass(frozen=True, eq=False)
class Answering:
    """How labels are looked for and scored."""

    towers: list[Tower]
    known: Known
    n_each: int  # candidates from each search
    beyond_vectors: bool  # frequent labels and those that share words are candidates, too
    companion: ExtremeClassifier | None
    n_jobs: int | None
    verbose: Verbose

    def topk(self, X: csr_matrix, k: int, way: Mixture | Judgement) -> TopK:
        """The k best of all candidates."""

        def best(signs: Signs) -> TopK:
            return TopK(*merge_nearest(signs.candidates, way.scores(signs), k))

        if X.shape[0] == 0:
            return TopK(np.zeros((0, k), np.int32), np.zeros((0, k), np.float32))
        return TopK.concatenate(self._each_block(X, max(self.n_each, k), best))

    def signs(self, X: csr_matrix) -> Iterator[Signs]:
        """Of all candidates, some samples at a time."""
        yield from self._each_block(X, self.n_each, lambda signs: signs)

    def _each_block(self, X: csr_matrix, n_each: int, use: Any) -> list[Any]:
        blocks = range(0, X.shape[0], _BLOCK)
        with progress_bar("Predicting", len(blocks), verbose=self.verbose) as bar:
            beside = None if self.companion is None else self.companion.predict_topk(X, n_each)

            def answer(first: int) -> Any:
                rows = slice(first, first + _BLOCK)
                part = X if len(blocks) == 1 else X[rows]
                theirs = None if beside is None else beside[rows]
                return use(self._signs(part, n_each, theirs, X.shape[0]))

            return run_tasks(answer, blocks, n_jobs=self.n_jobs, done=lambda _: bar.advance())

    def _signs(self, X: csr_matrix, n_each: int, beside: TopK | None, n_asked: int) -> Signs:
        """Of some of `n_asked` samples."""
        units = as_csr(unit_rows(X))
        views = [_View.of(tower, units) for tower in self.towers]
        found = [view.nearest(2 * n_each, n_asked) for view in views]
        if beside is not None:
            found.append(self.known.with_samples(beside.labels))
        if self.beyond_vectors:
            found.append(np.tile(self.known.frequent[:n_each], (X.shape[0], 1)))
            found.append(self.known.nearest(units, n_each))
        candidates = distinct(np.concatenate(found, axis=1))
        cosines = [view.cosines(candidates) for view in views]
        return Signs(
            candidates,
            cosines[0] if len(cosines) == 1 else np.mean(cosines, axis=0),
            self.known.cosines(units, candidates),
            self.known.log_counts[candidates],
            None if beside is None else self._beside(beside, candidates),
        )

    def _beside(self, answer: TopK, candidates: IntArray) -> "Beside":
        """By as many of the companion's answers for any k: scores do not depend on it."""
        labels, scores = answer.labels[:, : self.n_each], answer.scores[:, : self.n_each]
        n_labels = self.companion.n_labels_ if self.companion else 0
        is_strange = (candidates >= n_labels) | (self.known.counts[candidates] == 0)
        return Beside(looked_up(labels, scores, candidates), is_strange)


@dataclass(frozen=True, eq=False)
class _View:
    """Samples as one tower sees them."""

    tower: Tower
    bags: FloatArray
    lifted: FloatArray

    @classmethod
    def of(cls, tower: Tower, X: csr_matrix) -> "_View":
        """Rows have length 1."""
        bags = tower.encoder.bags_of_units(X)
        return cls(tower, bags, tower.encoder.lift(bags))

    def nearest(self, n: int, n_asked: int) -> IntArray:
        return self.tower.nearest(self.bags, self.lifted, n, n_asked)

    def cosines(self, candidates: IntArray) -> FloatArray:
        return self.tower.cosines(self.bags, self.lifted, candidates)


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
