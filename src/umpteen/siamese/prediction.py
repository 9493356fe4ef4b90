"""Answers: candidates from every tower, scored by all the evidence for them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from umpteen.base import ExtremeClassifier, TopK
from umpteen.kernels.nearest import merge_nearest
from umpteen.progress import Verbose, progress_bar
from umpteen.ranking import QuadraticRanker
from umpteen.sharding import OnRows, Sharded, over_blocks
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
    shortlist: int  # candidates from each search, if there are as many labels
    beyond_vectors: bool  # frequent labels and those that share words are candidates, too
    companion: ExtremeClassifier | None
    n_jobs: int | None
    verbose: Verbose

    @property
    def n_each(self) -> int:
        """The number of candidates from each search."""
        return min(self.shortlist, len(self.lexical.counts))

    def topk(self, X: csr_matrix, k: int, scoring: Scoring) -> TopK:
        """Return the k best of all candidates."""
        if X.shape[0] == 0:
            return TopK(np.zeros((0, k), np.int32), np.zeros((0, k), np.float32))
        return TopK.concatenate(self._each_block(X, max(self.n_each, k), _Best(scoring, k)))

    def evidence(self, X: csr_matrix) -> Iterator[Evidence]:
        """Yield the evidence for all candidates, some samples at a time."""
        yield from self._each_block(X, self.n_each, None)

    def _each_block(self, X: csr_matrix, n_each: int, use: "_Best | None") -> list[Any]:
        if X.shape[0] <= _BLOCK and self.companion is None:  # a single text should not wait
            evidence = self.evidence_of(X, n_each, None, X.shape[0])
            return [evidence if use is None else use.of(evidence)]
        with progress_bar("Predicting", -(-X.shape[0] // _BLOCK), verbose=self.verbose) as bar:
            rows = Sharded(X)
            if self.companion is not None:
                answer = self.companion.predict_topk(X, n_each)
                rows = Sharded(X, answer.labels, answer.scores)
            shared = (rows, replace(self, companion=None), n_each, X.shape[0], use)
            return over_blocks(
                _block, X.shape[0], _BLOCK, shared, n_jobs=self.n_jobs,
                done=lambda _: bar.advance(),
            )  # fmt: skip

    def evidence_of(
        self, X: csr_matrix, n_each: int, answer: TopK | None, n_asked: int
    ) -> Evidence:
        """Return the evidence for the candidates of some of `n_asked` samples.

        A companion's scores do not depend on `n_each`.
        """
        units = as_csr(unit_rows(X))
        encoded = [_EncodedSamples.of(tower, units) for tower in self.towers]
        found = [each.nearest(2 * n_each, n_asked) for each in encoded]
        if answer is not None:
            found.append(self.lexical.with_samples(answer.labels))
            answer = TopK(answer.labels[:, : self.n_each], answer.scores[:, : self.n_each])
        more, best_words = self._beyond_vectors(units, n_each)
        found += more
        candidates = distinct(np.concatenate(found, axis=1))
        products = [each.products(candidates) for each in encoded]
        return Evidence(
            candidates,
            products[0] if len(products) == 1 else np.mean(products, axis=0),
            self.lexical.cosines(units, candidates),
            self.lexical.log_counts[candidates],
            answer,
            self.towers[0].biases is not None,
            None if self.words is None else self.words.scores(units, candidates),
            best_words,
        )

    def _beyond_vectors(
        self, units: csr_matrix, n_each: int
    ) -> tuple[list[IntArray], FloatArray | None]:
        """Return candidates by frequency and by words, and the best cosine of a learned label.

        If learned labels have the words of all labels, one search finds both.
        """
        found: list[IntArray] = []
        if self.beyond_vectors:
            nearest, best = self.lexical.nearest(units, n_each)
            found = [np.tile(self.lexical.frequent[:n_each], (units.shape[0], 1)), nearest]
            if self.learned is self.lexical:
                return found, best
        return found, None if self.learned is None else self.learned.best(units)


@dataclass(frozen=True, eq=False)
class _Best:
    """The k best of candidates by a kind of scores."""

    scoring: Scoring
    k: int

    def of(self, evidence: Evidence) -> TopK:
        scores = self.scoring.scores(evidence)
        candidates = np.where(np.isnan(scores), np.int32(-1), evidence.candidates)
        return TopK(*merge_nearest(candidates, scores, self.k))


def _block(
    task: OnRows, sharded: Sharded, predictor: Predictor, n_each: int, n_asked: int,
    use: _Best | None,
) -> Any:  # fmt: skip
    """Return the evidence for candidates of some samples, or the best of them."""
    (X, *answer), places = sharded.at(task.rows)
    rows = slice(places.start, places.stop)
    part = X if len(task.rows) == X.shape[0] else X[rows]
    theirs = TopK(*(array[rows] for array in answer)) if answer else None
    evidence = predictor.evidence_of(part, n_each, theirs, n_asked)
    return evidence if use is None else use.of(evidence)


@dataclass(frozen=True, eq=False)
class _EncodedSamples:
    """The vectors of samples by one tower."""

    tower: Tower
    bags: FloatArray
    lifted: FloatArray

    @classmethod
    def of(cls, tower: Tower, units: csr_matrix) -> "_EncodedSamples":
        """Encode samples, whose rows have length 1."""
        bags = tower.encoder.bags_of_units(units)
        return cls(tower, bags, tower.encoder.lift(bags))

    def nearest(self, n: int, n_asked: int) -> IntArray:
        return self.tower.nearest(self.bags, self.lifted, n, n_asked)

    def products(self, candidates: IntArray) -> FloatArray:
        return self.tower.products(self.bags, self.lifted, candidates)
