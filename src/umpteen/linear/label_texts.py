"""What the labels' own features add to a score: their cosine to the sample."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, vstack
from sklearn.preprocessing import normalize

from umpteen import parallel
from umpteen.base import TopK
from umpteen.kernels.blending import blend
from umpteen.kernels.topk import frozen_csr, sparse_topk
from umpteen.linear.search import Answer
from umpteen.metrics import precision_at_k
from umpteen.storage import Shape, Within, storable
from umpteen.validation import Features, check_describes

WEIGHTS = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5)
_BLOCK = 2048
_RARE, _FEW_LABELS = 0.003, 100  # share and number of labels below which a word is rare


@storable
@dataclass(eq=False)
class LabelTexts:
    """Unit rows of label features, and the weight of their cosine in the score."""

    features: Annotated[csr_matrix, Shape("labels", "features")]
    weight: Annotated[float, Within(0, 1e9)] = 0.0
    n_candidates: Annotated[int, Within(1, 100_000)] = 100

    @classmethod
    def of(cls, features: Features, n_labels: int) -> Self:
        """Return unit rows of features as given, one per label."""
        check_describes(features, n_labels)
        return cls(csr_matrix(normalize(csr_matrix(features)), dtype=np.float32))

    def extended(self, n_new: int, more: "LabelTexts | None" = None) -> "LabelTexts":
        """Return texts with rows for further labels, empty ones for those without features."""
        features = self.features
        if more is not None:
            return replace(self, features=csr_matrix(vstack([features, more.features])))
        indptr = np.append(features.indptr, np.full(n_new, features.indptr[-1]))
        shape = (features.shape[0] + n_new, features.shape[1])
        return replace(
            self, features=csr_matrix((features.data, features.indices, indptr), shape=shape)
        )

    def without(self, labels: npt.NDArray[np.int32]) -> "LabelTexts":
        """Return texts with empty rows for some labels, which are then never found."""
        kept = np.ones(self.features.shape[0], np.float32)
        kept[labels] = 0
        features = csr_matrix(diags(kept) @ self.features)
        features.eliminate_zeros()
        return replace(self, features=features)

    @cached_property
    def postings(self) -> csr_matrix:
        """Return `(features, labels)`: which labels have a feature, if not very many have it.

        They find nothing that rarer words do not find, and cost most of the time.
        """
        postings = csr_matrix(self.features.T)
        n_labels = np.diff(postings.indptr)
        rare = n_labels <= max(_FEW_LABELS, _RARE * postings.shape[1])
        postings.data *= np.repeat(rare, n_labels)
        postings.eliminate_zeros()
        return postings

    def blend(self, X: csr_matrix, best: Answer, k: int, n_jobs: int | None) -> Answer:
        """Return the `k` best of what the tree found and what the texts find, by both together.

        A label that only one of the two found has zero from the other, but the cosine of the
        tree's candidates is always computed. Scores are (tree + weight * cosine) / (1 + weight).
        """
        if self.weight == 0:
            return best[0][:, :k], best[1][:, :k]
        labels, postings = frozen_csr(self.features), frozen_csr(self.postings)
        unit = csr_matrix(normalize(X))

        def rows(first: int) -> Answer:
            block = slice(first, first + _BLOCK)
            samples = frozen_csr(unit[block])
            near, _ = sparse_topk(samples, postings, len(labels[0]) - 1, self.n_candidates)
            return blend(  # type: ignore[no-any-return]
                samples, labels, best[0][block], best[1][block], near, np.float32(self.weight), k,
                X.shape[1],
            )  # fmt: skip

        if X.shape[0] == 0:
            return best[0][:, :k], best[1][:, :k]
        blocks = parallel.run(rows, range(0, X.shape[0], _BLOCK), n_jobs=n_jobs)
        return np.concatenate([a for a, _ in blocks]), np.concatenate([b for _, b in blocks])

    def cosine(self, x: csr_matrix, label: int) -> float:
        """Return the similarity of one sample and one label."""
        return float((normalize(x) @ self.features[label].T).sum())


def choose_weight(
    texts: LabelTexts, X: csr_matrix, Y: csr_matrix, best: Answer, n_jobs: int | None
) -> float:
    """Return the weight with the highest mean precision at 1, 3 and 5 on a validation split."""

    def quality(weight: float) -> float:
        top = TopK(*replace(texts, weight=weight).blend(X, best, 5, n_jobs))
        return float(np.mean(precision_at_k(Y, top, (1, 3, 5))))

    return max(WEIGHTS, key=quality)
