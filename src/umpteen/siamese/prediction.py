"""Answers: candidates from every tower, scored by all the evidence for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from umpteen.base import ExtremeClassifier, TopK
from umpteen.kernels.nearest import merge_nearest
from umpteen.parallel import run as run_tasks
from umpteen.progress import Verbose, progress_bar
from umpteen.ranking import QuadraticRanker
from umpteen.siamese.evidence import Evidence, Scoring
from umpteen.siamese.lexical import LexicalIndex
from umpteen.siamese.shortlist import distinct
from umpteen.siamese.tower import FloatArray, IntArray, Tower
from umpteen.siamese.words import WordClassifiers
from umpteen.validation import as_csr, unit_rows

_BLOCK = 512


@dataclass(frozen=True)
class FixedWeights:
    """Scores by the paper's fixed weights."""

    alpha: float

    def scores(self, evidence: Evidence) -> FloatArray:
        """Return the weighted sum of a candidate's three cosines."""
        return evidence.weighted(self.alpha)


@dataclass(frozen=True, eq=False)
class LearnedWeights:
    """Scores by rankers: the probability of each candidate.

    Labels without samples have a ranker of their own, which goes by their texts.
    """

    ranker: QuadraticRanker
    newcomers: QuadraticRanker | None = None

    def scores(self, evidence: Evidence) -> FloatArray:
        """Return the probability of each candidate."""
        found = self.ranker.probabilities(evidence.columns())
        is_new = (evidence.counts == 0) & (evidence.candidates >= 0)
        if self.newcomers is not None and is_new.any():
            found[is_new] = self.newcomers.probabilities(evidence.newcomer_columns()[is_new])
        return found


@dataclass(frozen=True, eq=False)
class ByWorth:
    """Scores of another kind, times what a hit on each label is worth."""

    scoring: Scoring
    worth: FloatArray  # (n_labels,)

    def scores(self, evidence: Evidence) -> FloatArray:
        """Return the score of each candidate."""
        return self.scoring.scores(evidence) * self.worth[evidence.candidates]


@dataclass(frozen=True, eq=False)
class Predictor:
    """How labels are searched and scored."""

    towers: list[Tower]
    lexical: LexicalIndex
    words: WordClassifiers | None
    learned: LexicalIndex | None  # the words of labels with samples, as they were in training
    n_each: int  # candidates from each search
    beyond_vectors: bool  # frequent labels and those that share words are candidates, too
    companion: ExtremeClassifier | None
    n_jobs: int | None
    verbose: Verbose

    def topk(self, X: csr_matrix, k: int, scoring: Scoring) -> TopK:
        """Return the k best of all candidates."""

        def best(evidence: Evidence) -> TopK:
            scores = scoring.scores(evidence)
            candidates = np.where(np.isnan(scores), np.int32(-1), evidence.candidates)
            return TopK(*merge_nearest(candidates, scores, k))

        if X.shape[0] == 0:
            return TopK(np.zeros((0, k), np.int32), np.zeros((0, k), np.float32))
        return TopK.concatenate(self._each_block(X, max(self.n_each, k), best))

    def evidence(self, X: csr_matrix) -> Iterator[Evidence]:
        """Yield the evidence for all candidates, some samples at a time."""
        yield from self._each_block(X, self.n_each, lambda evidence: evidence)

    def _each_block(self, X: csr_matrix, n_each: int, use: Any) -> list[Any]:
        blocks = range(0, X.shape[0], _BLOCK)
        with progress_bar("Predicting", len(blocks), verbose=self.verbose) as bar:
            answer = None if self.companion is None else self.companion.predict_topk(X, n_each)

            def block(first: int) -> Any:
                rows = slice(first, first + _BLOCK)
                part = X if len(blocks) == 1 else X[rows]
                theirs = None if answer is None else answer[rows]
                return use(self._evidence(part, n_each, theirs, X.shape[0]))

            return run_tasks(block, blocks, n_jobs=self.n_jobs, done=lambda _: bar.advance())

    def _evidence(self, X: csr_matrix, n_each: int, answer: TopK | None, n_asked: int) -> Evidence:
        """Of some of `n_asked` samples; a companion's scores do not depend on `n_each`."""
        units = as_csr(unit_rows(X))
        views = [_View.of(tower, units) for tower in self.towers]
        found = [view.nearest(2 * n_each, n_asked) for view in views]
        if answer is not None:
            found.append(self.lexical.with_samples(answer.labels))
            answer = TopK(answer.labels[:, : self.n_each], answer.scores[:, : self.n_each])
        if self.beyond_vectors:
            found.append(np.tile(self.lexical.frequent[:n_each], (X.shape[0], 1)))
            found.append(self.lexical.nearest(units, n_each))
        candidates = distinct(np.concatenate(found, axis=1))
        products = [view.products(candidates) for view in views]
        return Evidence(
            candidates,
            products[0] if len(products) == 1 else np.mean(products, axis=0),
            self.lexical.cosines(units, candidates),
            self.lexical.log_counts[candidates],
            answer,
            self.towers[0].biases is not None,
            None if self.words is None else self.words.scores(units, candidates),
            None if self.learned is None else self.learned.best(units),
        )


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

    def products(self, candidates: IntArray) -> FloatArray:
        return self.tower.products(self.bags, self.lifted, candidates)
