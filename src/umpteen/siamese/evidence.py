"""Evidence for the candidates of a sample."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit

from umpteen.base import TopK
from umpteen.siamese.tower import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence for each candidate; all are (n, candidates), and 0 without a candidate (-1)."""

    candidates: IntArray
    products: FloatArray  # (3, n, candidates): own vector, text, centroid; means over towers
    words: FloatArray  # cosine of the features themselves and the label's
    counts: FloatArray  # ln(1 + number of samples); any number without a candidate
    companion: TopK | None  # the answers of a companion, in models of version 0.1
    logistic: bool  # scores by own vectors are log-odds, otherwise cosines
    by_words: FloatArray | None = None  # scores by the labels' classifiers of single words
    best_words: FloatArray | None = None  # (n,) the best of `words` that a learned label has

    def columns(self) -> FloatArray:
        """Return all of it as (n, candidates, columns)."""
        columns = [*self.products, self.words, self.counts]
        if self.by_words is not None:
            columns.append(self.by_words)
        if self.best_words is not None:
            columns.append(self.words - self.best_words[:, None])
        made = np.empty((*self.words.shape, len(columns)), np.float32)
        for place, column in enumerate(columns):
            made[..., place] = column
        return made

    def newcomer_columns(self) -> FloatArray:
        """Return what is known of labels without samples: (n, candidates, text and words)."""
        return np.stack([self.products[1], self.words], axis=-1).astype(np.float32)

    def weighted(self, alpha: float) -> FloatArray:
        """Return alpha * own vector + (1 - alpha) * mean of text and centroid.

        Log-odds count as probabilities; a label without samples has its text alone.
        """
        own, text, centroid = self.products
        if self.logistic:
            own = np.where(self.counts > 0, expit(own), text)
        mean = np.float32(0.5) * (text + centroid)
        return np.asarray(np.float32(alpha) * own + np.float32(1 - alpha) * mean, np.float32)


class Scoring(Protocol):
    """How evidence becomes scores."""

    def scores(self, evidence: Evidence) -> FloatArray:
        """Return the score of each candidate."""
        ...
