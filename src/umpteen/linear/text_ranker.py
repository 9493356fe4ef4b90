"""A ranker of candidates by what the tree and the labels' own texts say for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from umpteen.kernels.blending import LOG_SCORE, N_EVIDENCE
from umpteen.ranking import BoostedTrees, QuadraticRanker
from umpteen.storage import Shape, Sizes, storable

_LEAST, _MOST = 1e-30, 1 - 1e-7  # probabilities in 32 bits that have log-odds
_TRUSTED = 0.5  # of the logarithm of the tree's score: what boosted trees start from
_DEPTH, _STRIDE = 3, 4  # of boosted trees: as good as depth 4 from all pairs, in a quarter of time

FloatArray = npt.NDArray[np.float32]
Limits = npt.NDArray[np.float32]  # the least and the largest evidence of each kind


@storable
@dataclass(frozen=True, eq=False)
class TextRanker:
    """The probability that a candidate is relevant, by the evidence of `join_evidence`.

    Its log-odds are the mean of those of two rankers: a quadratic one, which is smooth, and boosted
    trees, which find thresholds. `limits` are the least and the largest evidence that both learned
    from, beyond which products of columns mean nothing: a text that is no more than a name would
    make all labels likely. Models of earlier versions have no trees.
    """

    quadratic: QuadraticRanker
    limits: Annotated[Limits, Shape(2, N_EVIDENCE)]
    trees: BoostedTrees | None

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: rankers of other evidence."""
        if len(self.quadratic.means) != N_EVIDENCE:
            yield f"has a ranker of {len(self.quadratic.means)} columns; expected {N_EVIDENCE}"
        if self.trees is not None and self.trees.n_evidence != N_EVIDENCE:
            yield f"has trees of {self.trees.n_evidence} columns; expected {N_EVIDENCE}"
        if not (self.limits[0] <= self.limits[1]).all():
            yield "has limits of evidence of which the lower one is above the upper one"

    @classmethod
    def fitted(
        cls,
        evidence: FloatArray,
        relevant: npt.NDArray[np.bool_],
        n_candidates: npt.NDArray[np.integer],
        near: "TextRanker | None" = None,
    ) -> "TextRanker":
        """Learn from evidence (pairs, columns); each sample's pairs are in a row.

        It is faster if it starts from a ranker of similar evidence, `near`.
        """
        quadratic = QuadraticRanker.fitted(
            evidence, relevant, n_candidates, None if near is None else near.quadratic
        )
        trees = BoostedTrees.fitted(
            evidence, relevant, _offsets(evidence), depth=_DEPTH, stride=_STRIDE
        )
        return cls(quadratic, np.stack([evidence.min(axis=0), evidence.max(axis=0)]), trees)

    def probabilities(self, evidence: FloatArray) -> FloatArray:
        """Return (n, candidates) from evidence (n, candidates, columns)."""
        within = np.clip(evidence, *self.limits)
        found = self.quadratic.probabilities(within)
        if self.trees is None:
            return found
        smooth = logit(np.clip(found.astype(np.float64), _LEAST, _MOST))
        return expit((smooth + self.trees.log_odds(within) + _offsets(within)) / 2).astype(
            np.float32
        )


def _offsets(evidence: FloatArray) -> npt.NDArray[np.float64]:
    return _TRUSTED * evidence[..., LOG_SCORE].astype(np.float64)
