"""Models of version 0.1 that were trained with a second classifier: they answer as before.

New ones are made by `umpteen.Ensemble`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from umpteen.base import ExtremeClassifier
from umpteen.siamese.evidence import Evidence
from umpteen.storage import Given, Index, Shape, Sizes, Within, storable

FloatArray = npt.NDArray[np.float32]
_LEAF = -1
_LEAST = np.float32(1e-3)  # a score whose logarithm stands for none


def _upgrade_from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    state["columns"] = state.pop("signs")


@storable(version=2, upgrades={1: _upgrade_from_1})
@dataclass(frozen=True, eq=False)
class DecisionTrees:
    """The probability that a candidate is relevant: a sum of small decision trees."""

    roots: Annotated[npt.NDArray[np.int32], Shape("trees"), Index("nodes")]
    columns: Annotated[npt.NDArray[np.int32], Shape("nodes"), Within(_LEAF, 7)]  # or a leaf
    thresholds: Annotated[npt.NDArray[np.float64], Shape("nodes")]  # up to this, go left
    left: Annotated[npt.NDArray[np.int32], Shape("nodes"), Within(0, 2**31)]
    right: Annotated[npt.NDArray[np.int32], Shape("nodes"), Within(0, 2**31)]
    values: Annotated[npt.NDArray[np.float64], Shape("nodes")]  # of leaves
    base: float

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: child nodes out of range or out of order."""
        inner = np.flatnonzero(self.columns != _LEAF)
        for children in (self.left[inner], self.right[inner]):
            if (children <= inner).any() or (children >= len(self.columns)).any():
                yield "has children that do not come after their parents"

    def probabilities(self, evidence: FloatArray) -> FloatArray:
        """Return the probabilities of candidates, from their evidence `(..., columns)`."""
        rows = evidence.reshape(-1, evidence.shape[-1])
        total = np.full(len(rows), self.base)
        everyone = np.arange(len(rows))
        for root in self.roots:
            place = np.full(len(rows), root)
            while (inner := self.columns[place] != _LEAF).any():
                asked, here = everyone[inner], place[inner]
                goes_left = rows[asked, self.columns[here]] <= self.thresholds[here]
                place[inner] = np.where(goes_left, self.left[here], self.right[here])
            total += self.values[place]
        found = (1.0 / (1.0 + np.exp(-total))).astype(np.float32)
        return np.asarray(found.reshape(evidence.shape[:-1]))


@storable
@dataclass(frozen=True, eq=False)
class Companion:
    """A second classifier, and how its scores count: by trees, or with a fixed weight."""

    classifier: Annotated[ExtremeClassifier, Given("features")]
    trees: DecisionTrees | None
    weight: Annotated[float, Within(0, 1e9)]  # of the cosines, where there are no trees


@dataclass(frozen=True, eq=False)
class FusedScores:
    """Scores of a model with a companion.

    By trees: the geometric mean of their probability and of the companion's score, where the
    companion has learned the label. Otherwise (companion + weight * cosines) / (1 + weight).
    """

    companion: Companion
    alpha: float
    by_trees: bool
    counts: npt.NDArray[np.int64]  # samples of each label

    def scores(self, evidence: Evidence) -> FloatArray:
        """Return the score of each candidate."""
        theirs = _found(evidence)
        trees, weight = self.companion.trees, self.companion.weight
        if trees is None or not self.by_trees:
            share = np.float32(1 / (1 + weight))
            mixed = share * theirs + (1 - share) * evidence.weighted(self.alpha)
            return np.asarray(mixed, np.float32)
        more = np.stack([theirs, np.log(np.maximum(theirs, 0) + _LEAST)], axis=-1)
        columns = np.concatenate([evidence.columns(), more.astype(np.float32)], axis=-1)
        alone = trees.probabilities(columns)
        labels, n_learned = evidence.candidates, self.companion.classifier.n_labels_
        is_new = (labels >= n_learned) | (self.counts[labels] == 0)
        return np.where(is_new, alone, np.sqrt(alone * np.maximum(theirs, _LEAST)))


def _found(evidence: Evidence) -> FloatArray:
    """The companion's scores of candidates; 0 for what it does not offer."""
    answer, candidates = evidence.companion, evidence.candidates
    if answer is None:
        return np.zeros(candidates.shape, np.float32)
    same = (candidates[:, :, None] == answer.labels[:, None, :]) & (candidates >= 0)[:, :, None]
    scores = np.take_along_axis(answer.scores, same.argmax(axis=2), axis=1)
    return np.where(same.any(axis=2), scores, np.float32(0))
