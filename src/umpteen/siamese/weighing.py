"""How the ranker's weights are learned from a validation split."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.base import TopK
from umpteen.kernels.nearest import merge_nearest
from umpteen.metrics.hits import found_in
from umpteen.ranking import QuadraticRanker
from umpteen.siamese.prediction import Predictor
from umpteen.siamese.tower import FloatArray, IntArray

FEWEST_SAMPLES = 2_000  # with fewer, weights are fixed

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ValidationEvidence:
    """The candidates of a validation split, the evidence for them, and which are relevant."""

    candidates: IntArray  # (n, candidates)
    columns: FloatArray  # (n, candidates, columns)
    relevant: Mask  # (n, candidates)

    @classmethod
    def of(cls, predictor: Predictor, X: csr_matrix, Y: csr_matrix) -> "ValidationEvidence":
        """Collect the evidence of towers that have not learned from these samples."""
        blocks = list(predictor.evidence(X))
        candidates = np.concatenate([block.candidates for block in blocks])
        columns = np.concatenate([block.columns() for block in blocks])
        return cls(candidates, columns, found_in(Y, candidates))

    def ranker(self, rows: Mask | None = None) -> QuadraticRanker | None:
        """Return a ranker that has learned from some samples; None if no candidate is relevant."""
        there = self.candidates >= 0
        if rows is not None:
            there = there & rows[:, None]
        if not self.relevant[there].any():
            return None
        return QuadraticRanker.fitted(self.columns[there], self.relevant[there], there.sum(axis=1))

    def answers(self, k: int) -> TopK | None:
        """Return the `k` best candidates, ranked by weights of the other half of the samples."""
        scores = np.empty(self.candidates.shape, np.float32)
        half = np.arange(len(scores)) % 2 == 0
        for asked in (half, ~half):
            ranker = self.ranker(~asked)
            if ranker is None:
                return None
            scores[asked] = ranker.probabilities(self.columns[asked])
        return TopK(*merge_nearest(self.candidates, scores, k))
