"""If these fail, benchmarks on made-up data say nothing about real data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import normalize

from umpteen.data.describe import zipf_exponent
from umpteen.data.synthetic import make_extreme
from umpteen.errors import ParameterError


def precision_at_1(dataset, centroids):
    """By nearest centroid, dense: fine at the size of a test."""
    best = (dataset.test.X @ centroids.T).toarray().argmax(axis=1)
    return np.asarray(dataset.test.Y[np.arange(len(best)), best]).mean()


def test_labels_can_be_learned_from_words():
    dataset = make_extreme(4000, 3000, 500)
    by_samples = precision_at_1(dataset, normalize(dataset.train.Y.T @ dataset.train.X))
    most_frequent = np.bincount(dataset.train.Y.indices).argmax()
    assert by_samples > 2 * dataset.test.Y[:, most_frequent].mean()


def test_labels_can_be_found_by_their_own_words():
    dataset = make_extreme(2000, 3000, 500, label_features=True)
    assert dataset.label_features.shape == (500, 3000)
    assert precision_at_1(dataset, dataset.label_features) > 0.6


def test_more_noise_is_harder():
    clean, noisy = (
        make_extreme(2000, 3000, 500, noise=noise, label_features=True) for noise in (0.0, 0.9)
    )
    assert precision_at_1(clean, clean.label_features) > (
        precision_at_1(noisy, noisy.label_features) + 0.1
    )


def test_frequencies_follow_the_power_law():
    flat, steep = (
        zipf_exponent(np.bincount(make_extreme(20_000, 100, 1000, exponent=e).train.Y.indices))
        for e in (0.0, 1.2)
    )
    assert flat < 0.2
    assert 0.8 < steep < 1.4


def test_same_seed_same_bits_other_seed_other_data():
    first, again, other = (make_extreme(500, 300, 100, random_state=seed) for seed in (1, 1, 2))
    for part in ("train", "test"):
        for name in ("X", "Y"):
            one, two = (getattr(getattr(data, part), name) for data in (first, again))
            assert (one != two).nnz == 0
    assert (first.train.Y != other.train.Y).nnz > 0


@settings(max_examples=25, deadline=None)
@given(
    n_samples=st.integers(2, 200),
    n_features=st.integers(1, 100),
    n_labels=st.integers(1, 100),
    branching=st.integers(2, 20),
    depth=st.integers(0, 3),
    noise=st.floats(0, 1),
)
def test_any_size_gives_well_formed_parts(n_samples, n_features, n_labels, **shape):
    dataset = make_extreme(
        n_samples, n_features, n_labels, labels_per_sample=1, label_features=True, **shape
    )
    assert sum(len(part) for part in dataset.splits.values()) == n_samples
    for part in dataset.splits.values():
        assert part.X.has_canonical_format
        assert part.Y.has_canonical_format
        assert part.X.dtype == np.float32
        np.testing.assert_allclose(part.X.multiply(part.X).sum(axis=1), 1, rtol=1e-4)
        assert np.diff(part.Y.indptr).min(initial=1) >= 1
    if len(dataset.train) >= n_labels:
        assert np.bincount(dataset.train.Y.indices, minlength=n_labels).min() >= 1


def test_labels_per_sample_are_as_asked():
    dataset = make_extreme(5000, 1000, 1000, labels_per_sample=5.0)
    assert dataset.train.Y.nnz / len(dataset.train) == pytest.approx(5.0, rel=0.1)


def test_relatives_co_occur():
    dataset = make_extreme(5000, 1000, 1600, depth=1)
    together = dataset.train.Y.T @ dataset.train.Y
    together.setdiag(0)
    assert (together.data > 1).mean() > 0.1


@pytest.mark.parametrize(
    "wrong", [{"n_samples": 1}, {"labels_per_sample": 0.5}, {"noise": 2}, {"test_fraction": 1.0}]
)
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        make_extreme(**{"n_samples": 10, "n_features": 10, "n_labels": 10} | wrong)
