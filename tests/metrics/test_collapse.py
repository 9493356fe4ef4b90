"""Measures of collapse: 0 where everything has collapsed, and as the formulas say elsewhere."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umpteen.errors import FeaturesError, LabelsError
from umpteen.metrics import (
    classifier_simplex,
    collapse_measures,
    means_simplex,
    self_duality,
    set_variability,
    tagwise_angle,
)

SCALES = {1: 2.0, 2: 0.7, 3: 0.4}


def simplex(n_labels):
    return np.eye(n_labels) - 1 / n_labels


def collapsed(n_labels=5, per_set=3, dimension=None, seed=0, scales=SCALES):
    """Features exactly at C_m times the sum of their labels' rows, and those rows."""
    dimension = dimension or n_labels + 2
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((dimension, dimension)))[0]
    weight = simplex(n_labels) @ turn[:n_labels]
    sets = [s for m in scales for s in combinations(range(n_labels), m) for _ in range(per_set)]
    features = np.array([scales[len(s)] * weight[list(s)].sum(axis=0) for s in sets])
    return features, [list(s) for s in sets], weight


def noisy(noise, seed=0, **options):
    features, Y, weight = collapsed(seed=seed, **options)
    random = np.random.default_rng(seed + 1)
    return features + noise * random.standard_normal(features.shape), Y, weight


def random_features(n_labels=6, per_set=40, dimension=50, seed=0):
    random = np.random.default_rng(seed)
    sets = [
        list(s) for m in (1, 2) for s in combinations(range(n_labels), m) for _ in range(per_set)
    ]
    return random.standard_normal((len(sets), dimension)), sets


def every_value(found):
    return [
        *found.variability.values(),
        *found.tagwise_angle.values(),
        found.means_simplex,
        found.classifier_simplex,
        found.self_duality,
    ]


@given(st.integers(4, 7), st.integers(0, 50))
def test_all_are_zero_on_collapsed_features(n_labels, seed):
    found = collapse_measures(*collapsed(n_labels, seed=seed))
    assert sorted(found.variability) == [1, 2, 3]
    assert sorted(found.tagwise_angle) == [2, 3]
    np.testing.assert_allclose(every_value(found), 0, atol=1e-6)


@given(st.floats(0.01, 100), st.integers(0, 50))
def test_turning_and_stretching_change_nothing(scale, seed):
    features, Y, weight = noisy(0.1, seed=seed)
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((7, 7)))[0]
    before = collapse_measures(features, Y, weight)
    after = collapse_measures(scale * features @ turn, Y, 3 * weight @ turn)
    np.testing.assert_allclose(every_value(after), every_value(before), rtol=1e-3, atol=1e-5)


def test_more_noise_is_less_collapse():
    values = [every_value(collapse_measures(*noisy(noise))) for noise in (0.01, 0.1, 1.0)]
    without_classifier = np.delete(values, -2, axis=1)
    assert (np.diff(without_classifier, axis=0) > 0).all()


def test_variability_falls_with_the_noise_also_where_means_have_fewer_axes_than_features():
    """On the other axes noise is all there is, within sets and between their means."""
    small, large = (noisy(noise, dimension=20)[:2] for noise in (0.001, 0.1))
    assert set_variability(*small, 2) < 1e-3 * set_variability(*large, 2)
    assert set_variability(*small, 2, reference=True) > 1
    # With one label the reference's centre, too near the origin, adds such an axis.
    assert set_variability(*small, reference=True) > 1e3 * set_variability(*small)


def test_random_features_have_not_collapsed():
    features, Y = random_features()
    weight = np.random.default_rng(1).standard_normal((6, 50))
    # Within sets the variance is 1 on each of the five axes that six means span; the means of 40
    # samples have squared lengths of 50 / 40, and in so many dimensions stand nearly upright.
    assert set_variability(features, Y) == pytest.approx(5 * 40 / 50, rel=0.4)
    assert tagwise_angle(features, Y) == pytest.approx(1, abs=0.1)
    assert 0.5 < self_duality(weight, features, Y) < 2
    assert tagwise_angle(features, Y, centered=True) == pytest.approx(1, abs=0.15)


def test_formulas_literally():
    features, Y, weight = noisy(0.3)
    rows = [i for i, labels in enumerate(Y) if len(labels) == 1]
    singles, classes = features[rows].astype(np.float32), np.array([Y[i][0] for i in rows])
    singles = singles.astype(np.float64)
    means = np.array([singles[classes == k].mean(axis=0) for k in range(5)])
    target = (np.eye(5) - 1 / 5) / 2
    for reference in (False, True):
        center = singles.sum(axis=0) / (len(features) if reference else len(singles))
        within = singles - means[classes]
        around = means - center
        nc1 = (
            np.trace(within.T @ within / len(rows) @ np.linalg.pinv(around.T @ around / 5, 1e-10))
            / 5
        )
        assert set_variability(features, Y, reference=reference) == pytest.approx(nc1, rel=1e-5)
        vectors = means if reference else around
        gram = vectors @ vectors.T
        nc2 = np.linalg.norm(gram / np.linalg.norm(gram) - target)
        assert means_simplex(features, Y, reference=reference) == pytest.approx(nc2, rel=1e-5)
        both = weight @ around.T
        nc3 = np.linalg.norm(both / np.linalg.norm(both) - target)
        found = self_duality(weight, features, Y, reference=reference)
        assert found == pytest.approx(nc3, rel=1e-4)


@pytest.mark.parametrize("multiplicity", [2, 3])
def test_tagwise_angle_literally(multiplicity):
    features, Y, _ = noisy(0.3)
    of_set = {}
    for feature, labels in zip(features, Y, strict=True):
        of_set.setdefault(tuple(labels), []).append(feature)
    mean = {labels: np.mean(found, axis=0) for labels, found in of_set.items()}

    def angle(a, b):
        return np.degrees(np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))

    sums = {s: sum(mean[k,] for k in s) for s in combinations(range(5), multiplicity)}
    matched = np.mean([angle(mean[s], sums[s]) for s in sums])
    every = np.mean([angle(mean[s], other) for s in sums for other in sums.values()])
    assert tagwise_angle(features, Y, multiplicity) == pytest.approx(matched / every, rel=1e-5)


def test_uncentered_means_of_positive_features_never_reach_the_simplex():
    """Why the reference's NC2 stays up with a ReLU, and what centring is for."""
    features, Y, _ = collapsed(dimension=5)
    shifted = features + 3.0
    assert means_simplex(shifted, Y) < 1e-5
    assert means_simplex(shifted, Y, reference=True) > 0.5
    assert tagwise_angle(shifted, Y, centered=True) < 1e-5


def test_a_missing_set_and_labels_never_alone_leave_the_rest_comparable():
    features, Y, weight = collapsed(5)
    kept = [i for i, labels in enumerate(Y) if labels not in ([4], [0, 1])]
    found = collapse_measures(features[kept], [Y[i] for i in kept], weight)
    np.testing.assert_allclose(every_value(found), 0, atol=1e-6)


def test_many_labels_are_compared_with_a_sample_of_sums():
    features, Y, _ = collapsed(80, per_set=1, scales={1: 1.0, 2: 0.5})
    assert tagwise_angle(features, Y) < 1e-5
    random = np.random.default_rng(0).standard_normal(features.shape)
    assert tagwise_angle(random, Y) == pytest.approx(1, abs=0.05)


def test_everything_at_one_point_is_not_called_collapsed_to_a_simplex():
    Y = [[0], [1], [0], [1]]
    assert set_variability(np.zeros((4, 2)), Y) == 0
    assert set_variability(np.array([[1.0], [1], [-1], [-1]]), Y) == np.inf
    assert means_simplex(np.zeros((4, 2)), Y) == pytest.approx(1)


def test_a_classifier_of_equal_rows_is_far_from_a_simplex():
    assert classifier_simplex(simplex(6)) == pytest.approx(0, abs=1e-6)
    assert classifier_simplex(np.ones((6, 3))) == pytest.approx(np.sqrt(2), abs=1e-6)


def test_bad_input_is_named():
    features, Y, weight = collapsed()
    with pytest.raises(LabelsError, match="fewer than two label sets have 4"):
        set_variability(features, Y, 4)
    with pytest.raises(LabelsError, match="no set of 4 labels"):
        tagwise_angle(features, Y, 4)
    with pytest.raises(LabelsError, match="0 label"):
        means_simplex(features[:1], [[0, 1]])
    with pytest.raises(FeaturesError, match="4 rows"):
        self_duality(weight[:4], features, Y)
    with pytest.raises(FeaturesError, match="NaN"):
        collapse_measures(np.full((3, 2), np.nan), [[0], [1], [2]])
