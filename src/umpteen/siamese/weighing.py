"""How the rankers' weights are learned from a validation split."""

from dataclasses import dataclass

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
class ValidationEvidence:
    """The candidates of a validation split, the evidence for them, and which are relevant."""

    candidates: IntArray  # (n, candidates)
    columns: FloatArray  # (n, candidates, columns)
    newcomer_columns: FloatArray
    relevant: Mask  # (n, candidates)
    learned: Mask  # (n, candidates) labels that the towers know samples of
    hidden: Mask  # (n, candidates) labels that were hidden from the towers
    Y: csr_matrix

    @classmethod
    def of(
        cls, predictor: Predictor, X: csr_matrix, Y: csr_matrix,
        counts: npt.NDArray[np.int64], hidden: npt.NDArray[np.int64],
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
        )  # fmt: skip

    def ranker(self, rows: Mask | None = None) -> QuadraticRanker | None:
        """Return a ranker that has learned from some samples; None if no candidate is relevant."""
        return self._fitted(self.columns, self.learned, rows, fewest=1)

    def newcomer_ranker(self, rows: Mask | None = None) -> QuadraticRanker | None:
        """Return one of hidden labels; None if too few of them are relevant to learn from."""
        return self._fitted(self.newcomer_columns, self.hidden, rows, _FEWEST_RELEVANT)

    def answers(self, k: int) -> TopK | None:
        """Return the `k` best candidates, ranked by weights of the other half of the samples."""
        scores = np.empty(self.candidates.shape, np.float32)
        half = np.arange(len(scores)) % 2 == 0
        for asked in (half, ~half):
            ranker = self.ranker(~asked)
            if ranker is None:
                return None
            scores[asked] = ranker.probabilities(self.columns[asked])
            newcomers = self.newcomer_ranker(~asked)
            if newcomers is not None:
                is_new = (self.candidates >= 0) & ~self.learned & asked[:, None]
                scores[is_new] = newcomers.probabilities(self.newcomer_columns[is_new])
        return TopK(*merge_nearest(self.candidates, scores, k))

    def quality(self) -> float:
        """Return nDCG@5 of the answers, -1 if there are none."""
        answers = self.answers(5)
        return -1.0 if answers is None else float(ndcg_at_k(self.Y, answers, 5))

    def _fitted(
        self, columns: FloatArray, chosen: Mask, rows: Mask | None, fewest: int
    ) -> QuadraticRanker | None:
        there = chosen if rows is None else chosen & rows[:, None]
        if self.relevant[there].sum() < fewest:
            return None
        return QuadraticRanker.fitted(columns[there], self.relevant[there], there.sum(axis=1))
