"""The nearest mean at any scale: against all differences, in 64 bits and as fractions."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umpteen.collapse import NearestSet, nearest_mean
from umpteen.collapse.nearest_mean import NearestMean
from umpteen.metrics.label_sets import LabelSets

SPREADS = [1.0, 1e3, 1e4, 1e6, 1e9]
SHAPES = ["offset", "clusters", "means", "samples"]


@pytest.fixture(params=["small blocks", "usual blocks"])
def blocks(request, monkeypatch):
    if request.param == "small blocks":
        for name, size in {"ROWS": 7, "MEANS": 30, "NUMBERS": 50}.items():
            monkeypatch.setattr(nearest_mean, f"_BLOCK_{name}", size)
        monkeypatch.setattr(nearest_mean, "_LEAST_SCORES", 1)
        monkeypatch.setattr(nearest_mean, "_FEW", 2)


def problem(spread, shape, seed=0, n_means=300, n=200, d=16):
    """Means that differ by about 1 in each feature, and samples near some of them.

    All that is `spread` times as large has nothing to do with which is the nearest but for
    "means", where it stands for most of the difference.
    """
    random = np.random.default_rng(seed)
    means, directions = random.standard_normal((n_means, d)), random.standard_normal((2, d))
    if shape == "offset":
        means += spread * directions[0]
    elif shape == "clusters":
        means += spread * random.choice([-1.0, 1.0], (n_means, 1)) * directions[0]
    elif shape == "means":
        means += spread * random.standard_normal((n_means, 2)) @ directions
    samples = means[random.integers(n_means, size=n)] + 0.5 * random.standard_normal((n, d))
    if shape == "samples":
        samples += spread * random.standard_normal((n, 1)) * directions[0]
    return means, samples.astype(np.float32).astype(np.float64)


def by_differences(means, samples):
    """One sample at a time, all differences: what is meant by nearest."""
    distances = np.array([((sample - means) ** 2).sum(axis=1) for sample in samples])
    return distances.argmin(axis=1), distances.min(axis=1, initial=np.inf)


def by_fractions(means, sample):
    """The exact squared distances."""
    exact = [Fraction(float(each)) for each in sample]
    return [
        sum((x - Fraction(float(m))) ** 2 for x, m in zip(exact, mean, strict=True))
        for mean in means
    ]


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_nearest_mean_is_that_of_all_differences(shape, spread, dtype):
    """Sifted in 32 bits alone, 98 % of the sets are wrong at a spread of 10,000."""
    means, samples = problem(spread, shape)
    means = means.astype(dtype)
    which, distances = NearestMean.of(means).search(samples)
    expected, least = by_differences(means, samples)
    np.testing.assert_array_equal(which, expected)
    np.testing.assert_array_equal(distances, least)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("spread", SPREADS)
def test_no_mean_is_nearer_in_exact_arithmetic(shape, spread):
    means, samples = problem(spread, shape, n_means=30, n=20, d=4)
    which, _ = NearestMean.of(means).search(samples)
    for sample, chosen in zip(samples, which, strict=True):
        exact = by_fractions(means, sample)
        assert exact[chosen] <= min(exact) * (1 + Fraction(1, 10**14))


@pytest.mark.usefixtures("blocks")
@given(st.data())
def test_equal_distances_go_to_the_lowest_row(data):
    """Whole numbers: no difference is rounded, and many are equal."""
    seed = data.draw(st.integers(0, 10_000))
    random = np.random.default_rng(seed)
    n_means, d = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 4))
    shift = data.draw(st.sampled_from([0, 10**3, 10**6])) * random.integers(-1, 2, (n_means, 1))
    means = (random.integers(-2, 3, (n_means, d)) + shift).astype(np.float64)
    samples = random.integers(-2, 3, (20, d)) + random.choice(shift.ravel(), (20, 1))
    which, _ = NearestMean.of(means).search(samples.astype(np.float64))
    for sample, chosen in zip(samples, which, strict=True):
        exact = by_fractions(means, sample)
        assert chosen == exact.index(min(exact))


@given(
    st.integers(0, 10_000),
    st.sampled_from([1e-30, 1.0, 1e30]),
    st.sampled_from([1e-30, 1.0, 1e8, 1e16, 1e30]),
)
def test_any_scale_of_means_and_samples(seed, of_means, of_samples):
    """Squares of 1e30 overflow 32 bits, those of 1e-30 vanish."""
    random = np.random.default_rng(seed)
    means = of_means * random.standard_normal((40, 3))
    samples = (of_samples * random.standard_normal((10, 3))).astype(np.float32).astype(np.float64)
    which, distances = NearestMean.of(means).search(samples)
    expected, least = by_differences(means, samples)
    np.testing.assert_array_equal(which, expected)
    np.testing.assert_array_equal(distances, least)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("times", [2.0**30, 2.0**42, 2.0**90])
def test_samples_far_from_all_means_are_compared_in_every_block(times):
    means, samples = problem(1.0, "offset")
    samples[::3] *= times
    which, distances = NearestMean.of(means).search(samples)
    expected, least = by_differences(means, samples)
    np.testing.assert_array_equal(which, expected)
    np.testing.assert_array_equal(distances, least)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_sample_gets_the_same_answer_alone_and_in_company(shape):
    means, samples = problem(1e4, shape)
    search = NearestMean.of(means)
    together, distances = search.search(samples)
    alone = [search.search(sample[None]) for sample in samples[:50]]
    np.testing.assert_array_equal(together[:50], [which[0] for which, _ in alone])
    np.testing.assert_array_equal(distances[:50], [distance[0] for _, distance in alone])


@pytest.mark.parametrize("means", [np.zeros((1, 3)), np.ones((50, 3)), np.eye(3)[[0] * 9]])
def test_means_that_do_not_differ(means):
    which, distances = NearestMean.of(means).search(np.array([[0.0, 0, 0], [1, 2, 3]]))
    assert which.tolist() == [0, 0]
    np.testing.assert_array_equal(
        distances, by_differences(means, np.array([[0.0] * 3, [1, 2, 3]]))[1]
    )


def test_memory_stays_bounded_where_no_mean_can_be_ruled_out():
    """Every mean is as near as any other: all of 1.2 GB of differences would be too much."""
    means = np.eye(3000)[:, ::-1].copy()
    search = NearestMean.of(means)
    samples = np.zeros((16, 3000))
    tracemalloc.start()
    try:
        which, _ = search.search(samples)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (which == 0).all()
    assert peak < 300e6


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("spread", [1e3, 1e4, 1e6])
def test_label_sets_are_those_of_the_nearest_true_mean(shape, spread):
    """The means of a model are not rounded either."""
    centers, _ = problem(spread, shape)
    random = np.random.default_rng(1)
    own = np.repeat(np.arange(len(centers)), 3)
    features = (centers[own] + 0.3 * random.standard_normal((len(own), 16))).astype(np.float32)
    Y = [sorted({int(i) % 20, 20 + int(i) // 20}) for i in own]
    new = (centers + 0.5 * random.standard_normal(centers.shape)).astype(np.float32)
    found = NearestSet().fit(features, Y).predict(new)
    sets = LabelSets.of(features, Y)
    expected, _ = by_differences(sets.means, new.astype(np.float64))
    assert (found != sets.sets[expected]).nnz == 0
