"""The tag-wise average: the mean of a label set points where the sum of its labels' means does."""

from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from umpteen.metrics.label_sets import FloatArray, LabelSets

_MOST = 2000  # other sums to compare with; beyond, a random sample of them
_BLOCK = 1024


def tagwise_ratio(sets: LabelSets, multiplicity: int, centered: bool = False) -> float | None:
    """Return the mean angle of sets to their own sums over that to all sums; None without any."""
    labels, singles = sets.single()
    place = np.full(sets.sets.shape[1], -1)
    place[labels] = np.arange(len(labels))
    rows = np.flatnonzero(sets.multiplicities == multiplicity)
    members = place[sets.sets[rows].indices.reshape(-1, max(multiplicity, 1))]
    comparable = (members >= 0).all(axis=1)
    means, members = sets.means[rows[comparable]], members[comparable]
    if not len(means) or multiplicity < 1:
        return None
    own = singles[members].sum(axis=1)
    others = singles[_other_sets(len(labels), multiplicity)].sum(axis=1)
    if centered:
        others = others - own.mean(axis=0)
        means, own = means - means.mean(axis=0), own - own.mean(axis=0)
    matched = _angles(_unit(means), _unit(own)).mean()
    every = _mean_angle(_unit(means), _unit(others))
    return float(matched / every) if every else 0.0


def _other_sets(n_labels: int, multiplicity: int) -> npt.NDArray[np.int64]:
    """All sets of so many labels, or a sample; `(sets, multiplicity)`."""
    if comb(n_labels, multiplicity) <= _MOST:
        return np.array(list(combinations(range(n_labels), multiplicity)))
    random = np.random.default_rng(0)
    return np.array([random.choice(n_labels, multiplicity, replace=False) for _ in range(_MOST)])


def _angles(left: FloatArray, right: FloatArray) -> FloatArray:
    """Row by row, exact also for tiny angles."""
    chords = np.linalg.norm(left - right, axis=1)
    return np.asarray(2 * np.arcsin(np.minimum(chords / 2, 1)))


def _mean_angle(left: FloatArray, right: FloatArray) -> float:
    """Over all pairs, by blocks."""
    total = 0.0
    for start in range(0, len(left), _BLOCK):
        cosines = left[start : start + _BLOCK] @ right.T
        total += np.arccos(np.clip(cosines, -1, 1)).sum()
    return total / (len(left) * len(right))


def _unit(vectors: FloatArray) -> FloatArray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1))
