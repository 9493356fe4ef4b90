"""Metrics that reward rare labels as much as their absence from the annotation deserves.

Annotators miss relevant labels, rare ones most. A hit on a label with propensity p is worth
1 / p, and the sum over all samples is divided by the sum that perfect answers would reach
(Jain et al. 2016). It is one ratio of sums, not a mean of ratios.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.errors import LabelsShapeError, ParameterError
from umpteen.metrics.hits import Hits, entry_blocks, find_hits
from umpteen.metrics.inputs import FloatArray, Ks, Value, at_each, check_ks
from umpteen.metrics.ranking import discounts, ideal_weights, ratio
from umpteen.validation import check_labels

PROPENSITY_CONSTANTS = {"wikipedia": (0.5, 0.4), "amazon": (0.6, 2.6), "other": (0.55, 1.5)}


@dataclass(frozen=True, eq=False)
class LabelCounts:
    """How many of the training samples have each label: all that propensities depend on."""

    counts: npt.NDArray[np.integer]
    n_samples: int

    @classmethod
    def of(cls, Y_train: Any) -> "LabelCounts":
        """Count the labels of training samples.

        >>> LabelCounts.of([[0], [0, 1]]).counts
        array([2, 1])
        """
        labels = check_labels(Y_train, name="Y_train")
        return cls(np.bincount(labels.indices, minlength=labels.shape[1]), labels.shape[0])


def propensity(Y_train: Any, a: float = 0.55, b: float = 1.5) -> FloatArray:
    """Return the chance that a relevant label was annotated, per label (Jain et al. 2016).

    Rare labels are missed more often, so their propensity is lower; `a` and `b` are the data set's
    constants (`PROPENSITY_CONSTANTS`). Labels are counted in the training data. With one or two
    samples in total, the formula leaves [0, 1], and the result is 1. `Y_train` may be
    `LabelCounts`.

    >>> propensity([[0], [0], [0], [0, 1]]).round(3)
    array([0.8  , 0.721])
    >>> propensity([[0], [1]], *PROPENSITY_CONSTANTS["amazon"])
    array([1., 1.])
    """
    if not (0 <= a < np.inf and 0 < b < np.inf):
        raise ParameterError(f"a={a} and b={b} are not possible: a must be >= 0, b above 0")
    labels = Y_train if isinstance(Y_train, LabelCounts) else LabelCounts.of(Y_train)
    scale = max(np.log(max(labels.n_samples, 1)) - 1.0, 0.0) * (b + 1.0) ** a
    return np.asarray(1.0 / (1.0 + scale * (labels.counts + b) ** -a), np.float64)


def label_worth(labels: LabelCounts, tail: float) -> npt.NDArray[np.float32] | None:
    """Return propensity^-`tail`, what a hit on each label is worth; None if all are worth 1."""
    return (propensity(labels) ** -float(tail)).astype(np.float32) if tail else None


def psp_at_k(Y: Any, top: Any, k: Ks, propensity: Any) -> Value:
    """Return precision at `k` where a hit counts 1 / propensity, relative to perfect answers.

    >>> from umpteen import TopK
    >>> round(psp_at_k([[0], [1]], TopK([[0], [0]], [[0.9]] * 2), 1, propensity=[0.8, 0.2]), 4)
    0.2
    """
    scored = Scored.of(find_hits(Y, top, k, np.size(propensity)), propensity, k)
    return at_each(k, lambda k: psp(scored, k))


def psndcg_at_k(Y: Any, top: Any, k: Ks, propensity: Any) -> Value:
    """Return nDCG at `k` where a hit counts 1 / propensity, relative to perfect answers.

    >>> from umpteen import TopK
    >>> round(psndcg_at_k([[0, 1]], TopK([[0, 1]], [[0.9, 0.5]]), 2, propensity=[0.8, 0.2]), 4)
    0.7609
    """
    scored = Scored.of(find_hits(Y, top, k, np.size(propensity)), propensity, k)
    return at_each(k, lambda k: psndcg(scored, k))


@dataclass(frozen=True, eq=False)
class Scored:
    """Answers, the best possible answers in their place, and what each label is worth."""

    hits: Hits
    best: Hits
    worth: FloatArray

    @classmethod
    def of(cls, hits: Hits, propensity: Any, k: Ks) -> "Scored":
        """Return answers with what is needed to score them by propensity, at `k` or less."""
        chance = check_propensity(propensity, hits.relevant.shape[1])
        most = min(max(check_ks(k)), int(hits.n_relevant.max(initial=0)))
        labels = _best_labels(hits.relevant, chance, most)
        return cls(hits, Hits(labels, labels >= 0, hits.relevant), 1.0 / chance)

    def possible(self, k: int) -> float:
        """Return what the hits of perfect answers are worth in the first `k` places."""
        return self.best.total(k, label_weights=self.worth)


def psp(scored: Scored, k: int) -> float:
    """Return `psp_at_k` of hits."""
    return ratio(scored.hits.total(k, label_weights=scored.worth), scored.possible(k))


def psndcg(scored: Scored, k: int) -> float:
    """Return `psndcg_at_k` of hits."""
    n_places = max(scored.hits.labels.shape[1], scored.best.labels.shape[1])
    weights, places = ideal_weights(scored.hits, k), discounts(min(k, n_places))
    reached, possible = (
        hits.total(k, sample_weights=weights, label_weights=scored.worth, place_weights=places)
        for hits in (scored.hits, scored.best)
    )
    return ratio(reached, possible)


def check_propensity(propensity: Any, n_labels: int) -> FloatArray:
    """Return one chance in (0, 1] for each label."""
    chance = np.asarray(propensity, np.float64)
    if chance.shape != (n_labels,):
        raise LabelsShapeError(
            f"propensity has shape {chance.shape}, but there are {n_labels:,} labels; "
            "make it from training labels with the same columns: propensity(Y_train)"
        )
    if not np.all((chance > 0) & (chance <= 1)):
        raise ParameterError(
            f"propensity holds values from {chance.min():.3g} to {chance.max():.3g}; expected "
            "chances above 0 and up to 1. If these are inverse propensities, pass 1 / them"
        )
    return chance


def _best_labels(relevant: csr_matrix, chance: FloatArray, k: int) -> npt.NDArray[np.int32]:
    """The `k` relevant labels of each sample that are worth most, -1 where there are fewer."""
    by_worth = np.argsort(chance, kind="stable")
    rank = np.empty(len(by_worth), np.int64)
    rank[by_worth] = np.arange(len(by_worth))
    best = np.full((relevant.shape[0], k), -1, np.int32)
    for rows, entries, row_of_entry in entry_blocks(relevant):
        keys = np.sort(row_of_entry * len(rank) + rank[relevant.indices[entries]])
        starts = relevant.indptr[rows] - entries.start
        place = np.arange(len(keys)) - starts[row_of_entry]
        taken = place < k
        best[rows][row_of_entry[taken], place[taken]] = by_worth[keys[taken] % max(len(rank), 1)]
    return best
