"""How far features have collapsed: the measures NC1, NC2, NC3 and NCm, all 0 in the end.

`features` are those of a network's last layer, `(n, d)`, `Y` is what `fit` takes for labels and
`weight` holds the rows of the classifier, `(n_labels, d)`. None of the measures changes if the
features (and the weight) are turned, or made longer or shorter.

By default they say what they should. With `reference=True` they are those of the code that came
with the paper, for comparison with its figures; the differences are in each docstring.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from umpteen.errors import FeaturesError, LabelsError
from umpteen.metrics.label_sets import FloatArray, LabelSets, dense_features


@dataclass(frozen=True)
class CollapseMeasures:
    """All measures at once; those per multiplicity are by number of labels."""

    variability: dict[int, float]  # NC1
    means_simplex: float  # NC2 of the means of samples with one label
    tagwise_angle: dict[int, float]  # NCm
    classifier_simplex: float | None = None  # NC2 of the classifier, where it was given
    self_duality: float | None = None  # NC3, likewise


def collapse_measures(
    features: Any, Y: Any, weight: Any = None, *, reference: bool = False
) -> CollapseMeasures:
    """Return all measures; multiplicities with too few label sets to tell are left out.

    >>> corners = np.eye(3) - 1 / 3
    >>> features = np.concatenate([corners, corners + corners[[1, 2, 0]]])
    >>> found = collapse_measures(features, [[0], [1], [2], [0, 1], [1, 2], [0, 2]], corners)
    >>> max(found.variability[2], found.means_simplex, found.self_duality) < 1e-6
    True
    >>> round(found.tagwise_angle[2], 4)
    0.0
    """
    sets = LabelSets.of(features, Y)
    n_sets = dict(zip(*np.unique(sets.multiplicities, return_counts=True), strict=True))
    several = [int(m) for m, count in n_sets.items() if m >= 1 and count >= 2]
    labels, _ = _single_means(sets)
    tagwise = {}
    for m in several:
        value = tagwise_ratio(sets, m) if 1 < m < len(labels) else None
        if value is not None:
            tagwise[m] = value
    return CollapseMeasures(
        {m: _variability(sets, m, reference) for m in several},
        _means_simplex(sets, reference),
        tagwise,
        None if weight is None else classifier_simplex(weight),
        None if weight is None else _self_duality(sets, weight, reference),
    )


def set_variability(
    features: Any, Y: Any, multiplicity: int = 1, *, reference: bool = False
) -> float:
    """Return NC1: the variability within label sets, relative to that between their means.

    This is trace(S_W S_B^+) / sets, over samples with `multiplicity` labels. S_W is the covariance
    within sets, and S_B that of the sets' means, on its `labels - 1` main axes: collapsed means
    have no others, and noise on further axes would keep the ratio from falling. The reference keeps
    all axes. It also takes S_B around a centre that is too close to the origin: the sum of features
    divided by the number of all samples, including those with other numbers of labels. With one
    label, this adds an axis.
    """
    sets = LabelSets.of(features, Y)
    if (sets.multiplicities == multiplicity).sum() < 2:
        raise LabelsError(
            f"fewer than two label sets have {multiplicity} label(s): there is nothing to compare"
        )
    return _variability(sets, multiplicity, reference)


def classifier_simplex(weight: Any) -> float:
    """Return NC2 of the classifier: how far its rows are from a simplex, from 0 to below 2."""
    return _simplex_distance(dense_features(weight), dense_features(weight))


def means_simplex(features: Any, Y: Any, *, reference: bool = False) -> float:
    """Return NC2 of the means: how far those of samples with one label are from a simplex.

    Means are centered first. The reference does not do this; with non-negative features, as after
    a ReLU, it cannot reach 0.
    """
    return _means_simplex(LabelSets.of(features, Y), reference)


def self_duality(weight: Any, features: Any, Y: Any, *, reference: bool = False) -> float:
    """Return NC3: how far classifier and means (as in NC2) are from being the same simplex.

    The reference subtracts the sum of features with one label, divided by the number of all
    samples.
    """
    return _self_duality(LabelSets.of(features, Y), weight, reference)


def tagwise_angle(features: Any, Y: Any, multiplicity: int = 2, *, centered: bool = False) -> float:
    """Return NCm: the angle of a set's mean to the sum of its labels' means, relative to others.

    This is the mean angle of a label set's mean to the sum of the means of its own labels (each
    from samples with one label), divided by the mean angle to the sums of all sets with the same
    number of labels, including its own. Random features have 1.

    With `centered`, the averages of means and of sums are subtracted first. Then it is 0 even if
    the features of a multiplicity have a common offset, as after a ReLU.
    """
    sets = LabelSets.of(features, Y)
    value = tagwise_ratio(sets, multiplicity, centered)
    if value is None:
        raise LabelsError(
            f"no set of {multiplicity} labels can be compared: there must be such samples, "
            "and other samples that have each of these labels alone"
        )
    return value


def _single_means(sets: LabelSets) -> tuple[Any, FloatArray]:
    labels, means = sets.single()
    if len(labels) < 2:
        raise LabelsError(
            f"{len(labels)} label(s) are the only label of some samples; the measures compare the "
            "means of such samples and need two or more"
        )
    return labels, means


def _center(sets: LabelSets, means: FloatArray, multiplicity: int, reference: bool) -> FloatArray:
    if not reference:
        return np.asarray(means.mean(axis=0))
    rows = sets.multiplicities[sets.which] == multiplicity
    return np.asarray(sets.features[rows].sum(axis=0) / len(rows))


def _variability(sets: LabelSets, multiplicity: int, reference: bool) -> float:
    chosen = sets.multiplicities == multiplicity
    rows = chosen[sets.which]
    within = sets.features[rows] - sets.means[sets.which[rows]]
    means = sets.means[chosen]
    _, lengths, axes = np.linalg.svd(
        means - _center(sets, means, multiplicity, reference), full_matrices=False
    )
    kept = lengths > lengths[0] * np.sqrt(max(means.shape) * np.finfo(np.float64).eps)
    if not reference:
        kept[len(np.unique(sets.sets.indices)) - 1 :] = False
    if not lengths[0]:
        return float("inf") if within.any() else 0.0
    # S_B^+ has the squared inverse lengths on its axes, times the number of sets.
    scaled = within @ axes[kept].T / lengths[kept]
    return float((scaled**2).sum() / len(within))


def _means_simplex(sets: LabelSets, reference: bool) -> float:
    _, means = _single_means(sets)
    vectors = means if reference else means - means.mean(axis=0)
    return _simplex_distance(vectors, vectors)


def _self_duality(sets: LabelSets, weight: Any, reference: bool) -> float:
    labels, means = _single_means(sets)
    rows = dense_features(weight, n_features=means.shape[1])
    if len(rows) != sets.sets.shape[1]:
        raise FeaturesError(
            f"weight has {len(rows):,} rows; expected one for each of {sets.sets.shape[1]:,} labels"
        )
    return _simplex_distance(rows[labels], means - _center(sets, means, 1, reference))


def _simplex_distance(left: FloatArray, right: FloatArray) -> float:
    """Between left @ right.T and the inner products of a simplex, both at length 1."""
    products = left @ right.T
    n = len(products)
    simplex = (np.eye(n) - 1 / n) / np.sqrt(max(n - 1, 1))
    return float(np.linalg.norm(products / (np.linalg.norm(products) or 1.0) - simplex))


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
    """All sets of `multiplicity` labels, or a sample of them; `(sets, multiplicity)`."""
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
