"""What a model knows about its labels, and how labels are added and removed."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, vstack

from umpteen.siamese.fitting import counts_of
from umpteen.siamese.label_features import centroids_of, complete
from umpteen.siamese.tower import Tower, log_odds
from umpteen.siamese.words import WordClassifiers
from umpteen.validation import as_csr, unit_rows


@dataclass(frozen=True, eq=False)
class KnownLabels:
    """Everything in a model that depends on its labels; it is replaced as a whole."""

    towers: list[Tower]
    features: csr_matrix  # completed by centroids, rows of length 1
    counts: npt.NDArray[np.int64]  # samples of each label
    words: WordClassifiers | None

    def added(
        self, features: csr_matrix, X: csr_matrix, Y: csr_matrix, n_samples: int
    ) -> "KnownLabels":
        """Return the same with new labels at the end, which have these features and samples.

        Biases are log-odds among the `n_samples` that the model was trained on.
        """
        features, counts = complete(features, X, Y), counts_of(Y)
        odds = log_odds(counts, n_samples)
        towers = [
            tower.with_labels(features, centroids_of(tower.encoder, X, Y), odds)
            for tower in self.towers
        ]
        every = csr_matrix(vstack([self.features, as_csr(unit_rows(features))]))
        words = self.words
        if words is not None:
            words = words.with_labels(as_csr(unit_rows(X)), Y)
        return KnownLabels(towers, every, np.concatenate([self.counts, counts]), words)

    def removed(self, ids: npt.NDArray[np.int32]) -> "KnownLabels":
        """Return the same, with some labels that are never predicted."""
        counts, kept = self.counts.copy(), np.ones(len(self.counts), np.float32)
        counts[ids] = 0  # no more among the most frequent
        kept[ids] = 0  # nor found by words
        features = csr_matrix(diags(kept) @ self.features)
        features.eliminate_zeros()
        features.sort_indices()  # scores of the others stay the same to the bit
        towers = [tower.without_labels(ids) for tower in self.towers]
        return KnownLabels(towers, features, counts, self.words)
