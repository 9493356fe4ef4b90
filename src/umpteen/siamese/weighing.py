"""How the rankers' weights are learned from a validation split."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.base import TopK
from umpteen.kernels.nearest import merge_nearest
from umpteen.metrics import ndcg_at_k
from umpteen.metrics.hits import found_in
from umpteen.ranking import QuadraticRanker
from umpteen.siamese.prediction import Predictor
from umpteen.siamese.tower import FloatArray, IntArray

FEWEST_SAMPLES = 2_000  # with fewer, weights are fixed
_HIDDEN, _OFTEN = 0.05, 0.01  # shares of labels and of samples
_FEWEST_RELEVANT = 10
_MOST_SAMPLES = 10_000  # that hidden labels are looked for in
_RAISED = (8.0, 6.0, 4.0, 3.0, 2.0)  # by what the odds of newcomers may be multiplied
_TOLERATED = 0.002  # of nDCG@5, lost by that

Mask = npt.NDArray[np.bool_]


def newcomers(Y: csr_matrix, texts: csr_matrix, seed: int) -> npt.NDArray[np.int64]:
    """Return a random twentieth of the labels that have texts and samples, but not very many.

    Hidden from towers, they show what is known of a label before its first sample. A label of
    more than one sample in a hundred stays: the other labels are learned beside it.
    """
    counts = Y.getnnz(axis=0)
    few = (counts > 0) & (counts <= max(1, _OFTEN * Y.shape[0])) & (texts.getnnz(axis=1) > 0)
    random = np.random.default_rng([seed, 1])
    return np.sort(random.permutation(np.flatnonzero(few))[: int(_HIDDEN * few.sum())])


@dataclass(frozen=True, eq=False)
class RankerData:
    """Pairs of a sample and a candidate from which a ranker learns, sample by sample."""

    columns: FloatArray  # (pairs, columns)
    relevant: Mask  # (pairs,)
    n_candidates: npt.NDArray[np.int64]  # of each sample

    @classmethod
    def joined(cls, first: "RankerData", second: "RankerData") -> "RankerData":
        """Return the pairs of both, one after the other."""
        return cls(
            np.concatenate([first.columns, second.columns]),
            np.concatenate([first.relevant, second.relevant]),
            np.concatenate([first.n_candidates, second.n_candidates]),
        )

    def ranker(self, fewest: int) -> QuadraticRanker | None:
        """Return a ranker that has learned from them; None if fewer than so many are relevant."""
        if self.relevant.sum() < fewest:
            return None
        return QuadraticRanker.fitted(self.columns, self.relevant, self.n_candidates)


def hidden_pairs(
    predictor: Predictor, X: csr_matrix, Y: csr_matrix, hidden: npt.NDArray[np.int64]
) -> RankerData:
    """Return candidates that were hidden from towers, of samples that the towers have learned from.

    What a sample taught about other labels does not tell which hidden ones it has. If it is the
    only sample of a hidden label, the pair is left out: without this sample, nobody would know the
    label, so such pairs would make newcomers look more likely than they are.
    """
    n_asked = min(X.shape[0], _MOST_SAMPLES) if len(hidden) else 1
    rows = np.linspace(0, X.shape[0] - 1, n_asked).astype(np.int64)
    labels, counts = csr_matrix(Y[rows]), Y.getnnz(axis=0)
    blocks = list(predictor.evidence(csr_matrix(X[rows])))
    candidates = np.concatenate([block.candidates for block in blocks])
    relevant = found_in(labels, candidates)
    kept = (candidates >= 0) & np.isin(candidates, hidden)
    kept &= ~(relevant & (counts[candidates] == 1))
    columns = np.concatenate([block.newcomer_columns() for block in blocks])
    return RankerData(columns[kept], relevant[kept], kept.sum(axis=1))


@dataclass(frozen=True, eq=False)
class ValidationEvidence:
    """The candidates of a validation split, the evidence for them, and which are relevant."""

    candidates: IntArray  # (n, candidates)
    columns: FloatArray  # (n, candidates, columns)
    newcomer_columns: FloatArray
    relevant: Mask  # (n, candidates)
    learned: Mask  # (n, candidates) labels that the towers know samples of
    hidden: Mask  # (n, candidates) labels that were hidden from the towers
    Y: csr_matrix
    further: RankerData  # hidden labels of other samples

    @classmethod
    def of(
        cls, predictor: Predictor, X: csr_matrix, Y: csr_matrix,
        counts: npt.NDArray[np.int64], hidden: npt.NDArray[np.int64], further: RankerData,
    ) -> "ValidationEvidence":  # fmt: skip
        """Collect the evidence of towers that have not learned from these samples."""
        blocks = list(predictor.evidence(X))
        candidates = np.concatenate([block.candidates for block in blocks])
        columns = np.concatenate([block.columns() for block in blocks])
        of_newcomers = np.concatenate([block.newcomer_columns() for block in blocks])
        there = candidates >= 0
        return cls(
            candidates, columns, of_newcomers, found_in(Y, candidates),
            there & (counts[candidates] > 0), there & np.isin(candidates, hidden), Y,
            further,
        )  # fmt: skip

    def ranker(self, rows: Mask | None = None) -> QuadraticRanker | None:
        """Return a ranker that has learned from some samples; None if no candidate is relevant."""
        pairs = self._pairs(self.columns, self.learned, rows)
        if not pairs.relevant.any():
            return None
        return QuadraticRanker.logistic(pairs.columns, pairs.relevant)

    def newcomer_ranker(
        self, others: QuadraticRanker | None, rows: Mask | None = None
    ) -> QuadraticRanker | None:
        """Return one of labels without samples; None if too few were relevant to learn from.

        It has learned probabilities from hidden labels. Honest ones are so small that a newcomer
        is hardly ever among the first answers. So odds are multiplied as far as the first answers
        to the split stay as good as they are without any newcomer; `others` is the ranker of labels
        with samples.
        """
        of_split = self._pairs(self.newcomer_columns, self.hidden, rows)
        honest = RankerData.joined(of_split, self.further).ranker(_FEWEST_RELEVANT)
        if honest is None or others is None:
            return honest
        asked = np.ones(len(self.Y.indptr) - 1, bool) if rows is None else rows
        least = (1 - _TOLERATED) * self._ndcg(others, None, asked)
        for times in _RAISED:
            raised = _with_multiplied_odds(honest, times)
            if self._ndcg(others, raised, asked) >= least:
                return raised
        return honest

    def answers(self, k: int) -> TopK | None:
        """Return the `k` best candidates, ranked by weights of the other half of the samples."""
        scores = np.empty(self.candidates.shape, np.float32)
        half = np.arange(len(scores)) % 2 == 0
        for asked in (half, ~half):
            ranker = self.ranker(~asked)
            if ranker is None:
                return None
            newcomers = self.newcomer_ranker(ranker, ~asked)
            scores[asked] = self._scores(ranker, newcomers, asked)
        return TopK(*merge_nearest(self.candidates, scores, k))

    def quality(self) -> float:
        """Return nDCG@5 of the answers, -1 if there are none."""
        answers = self.answers(5)
        return -1.0 if answers is None else float(ndcg_at_k(self.Y, answers, 5))

    def _scores(
        self, ranker: QuadraticRanker, newcomers: QuadraticRanker | None, rows: Mask
    ) -> FloatArray:
        """Return scores of the candidates of some samples.

        Without a ranker of newcomers, newcomers are scored like the others.
        """
        scores = ranker.probabilities(self.columns[rows])
        if newcomers is not None:
            is_new = (self.candidates >= 0)[rows] & ~self.learned[rows]
            scores[is_new] = newcomers.probabilities(self.newcomer_columns[rows][is_new])
        return scores

    def _ndcg(
        self, ranker: QuadraticRanker, newcomers: QuadraticRanker | None, rows: Mask
    ) -> float:
        """Return nDCG@5 of the answers to some samples.

        Without a ranker of newcomers, newcomers come last. So do labels that only the split has,
        because that they are known at all says that they are relevant.
        """
        scores = self._scores(ranker, newcomers, rows)
        asked = self.learned if newcomers is None else self.learned | self.hidden
        scores[~asked[rows]] = 0
        answers = TopK(*merge_nearest(self.candidates[rows], scores, 5))
        return float(ndcg_at_k(csr_matrix(self.Y[rows]), answers, 5))

    def _pairs(self, columns: FloatArray, chosen: Mask, rows: Mask | None) -> RankerData:
        there = chosen if rows is None else chosen & rows[:, None]
        return RankerData(columns[there], self.relevant[there], there.sum(axis=1))


def _with_multiplied_odds(ranker: QuadraticRanker, times: float) -> QuadraticRanker:
    """Return a ranker whose odds are multiplied."""
    weights = ranker.weights.copy()
    weights[0] += np.log(times)  # the constant term
    return replace(ranker, weights=weights)
