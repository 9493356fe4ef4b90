"""If these fail, samples get lost between groups, or what is known of a group is wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random_array
from sklearn.preprocessing import normalize

import umpteen as um
from umpteen.errors import FeaturesError, GroupsError, ParameterError

seeds = st.integers(0, 2**32 - 1)


def random_labels(n_samples, n_labels=7, seed=0):
    return csr_matrix(np.random.default_rng(seed).random((n_samples, n_labels)) < 0.3)


def assert_partition(groups, n_samples):
    assert groups.shape[1] == n_samples
    assert groups.has_canonical_format
    assert groups.dtype == np.float32
    assert (groups.data == 1).all()
    assert np.array_equal(np.sort(groups.indices), np.arange(n_samples))
    assert np.diff(groups.indptr).min() >= 1


def same_bits(first, second):
    return all(
        np.array_equal(getattr(first, part), getattr(second, part))
        for part in ("data", "indices", "indptr")
    )


@given(st.integers(1, 300), st.integers(1, 320), seeds)
def test_random_groups_are_a_partition(n_samples, size, seed):
    groups = um.data.group_randomly(n_samples, size, seed)
    assert_partition(groups, n_samples)
    sizes = np.diff(groups.indptr)
    assert len(sizes) == -(-n_samples // size)
    assert (sizes[:-1] == size).all()
    assert same_bits(groups, um.data.group_randomly(n_samples, size, seed))


def test_random_groups_are_random():
    """Every pair of samples is as often together as chance says."""
    together = sum(
        (groups := um.data.group_randomly(12, 3, seed)).T @ groups for seed in range(4000)
    ).toarray()
    apart = together[~np.eye(12, dtype=bool)] / 4000
    assert apart.min() > 2 / 11 - 0.03
    assert apart.max() < 2 / 11 + 0.03


@given(st.integers(1, 120), st.integers(0, 6), st.sampled_from([0.0, 0.5]), seeds)
def test_clusters_are_a_balanced_partition(n_samples, depth, noise, seed):
    X = random_array((n_samples, 300), density=0.05, rng=seed).astype(np.float32)  # some rows are 0
    if 2**depth > n_samples:
        with pytest.raises(ParameterError, match=f"0 to {n_samples.bit_length() - 1}$"):
            um.data.group_by_clusters(X, depth, noise, seed)
        return
    groups = um.data.group_by_clusters(X, depth, noise, seed)
    assert_partition(groups, n_samples)
    assert groups.shape[0] == 2**depth
    sizes = np.diff(groups.indptr)
    assert sizes.max() - sizes.min() <= 1
    assert same_bits(groups, um.data.group_by_clusters(X, depth, noise, seed))


def test_depth_0_is_one_group():
    assert um.data.group_by_clusters(np.eye(5), 0).toarray().tolist() == [[1.0] * 5]


@pytest.mark.parametrize("seed", range(5))
def test_clusters_are_found(seed):
    """Eight bundles of similar rows, in random order, are the eight groups; scale is ignored."""
    rng = np.random.default_rng(seed)
    bundle = rng.permutation(np.repeat(np.arange(8), 10))
    X = np.eye(8)[bundle] + 0.05 * rng.random((80, 8))
    groups = um.data.group_by_clusters(X * rng.uniform(0.1, 10, (80, 1)), 3, random_state=seed)
    assert {frozenset(bundle[groups[j].indices]) for j in range(8)} == {
        frozenset([k]) for k in range(8)
    }


def cohesion(X, groups):
    """How similar the samples of a group are: mean squared length of the groups' mean rows."""
    means = normalize(groups, "l1") @ normalize(X)
    return float(np.asarray(means.power(2).sum(axis=1)).mean())


def test_heterogeneity_grows_with_noise():
    X = um.data.make_extreme(2000, 3000, 100, noise=0.3, test_fraction=0).train.X
    found = [cohesion(X, um.data.group_by_clusters(X, 6, noise, 0)) for noise in (0, 1, 2, 4, 30)]
    assert found == sorted(found, reverse=True)
    random = cohesion(X, um.data.group_randomly(2000, 31, 0))
    assert found[0] > 2 * random
    assert found[-1] < 1.1 * random


@pytest.mark.parametrize("width", [40, 700], ids=["as it is", "projected"])
def test_dense_and_sparse_features_give_the_same_groups(width):
    X = random_array((90, width), density=0.1, rng=1).astype(np.float32)
    for noise in (0.0, 0.7):
        sparse = um.data.group_by_clusters(X, 4, noise, 0)
        assert same_bits(sparse, um.data.group_by_clusters(X.toarray(), 4, noise, 0))


@given(st.integers(1, 80), st.integers(1, 90), seeds)
def test_counts_add_up(n_samples, size, seed):
    Y = random_labels(n_samples, seed=seed)
    groups = um.data.group_randomly(n_samples, size, seed)
    counts = um.data.aggregate(Y, groups)
    literal = [Y.toarray()[groups[j].indices].sum(axis=0) for j in range(groups.shape[0])]
    assert np.array_equal(counts.toarray(), literal)
    assert counts.has_canonical_format
    occurs = um.data.aggregate(Y, groups, merge="set")
    assert np.array_equal(occurs.toarray(), counts.toarray() > 0)


@given(st.integers(1, 60), seeds)
def test_groups_of_one_give_the_labels_back(n_samples, seed):
    Y = random_labels(n_samples, seed=seed)
    groups = um.data.group_randomly(n_samples, 1, seed)
    for merge in ("list", "set"):
        assert np.array_equal(
            (groups.T @ um.data.aggregate(Y, groups, merge)).toarray(), Y.toarray()
        )


def test_overlapping_groups_and_other_forms():
    assert um.data.aggregate([2, 0, 2], [[0, 1, 2], [2]]).toarray().tolist() == [
        [1, 0, 2],
        [0, 0, 1],
    ]
    assert um.data.aggregate([2, 0, 2], np.array([1, 0, 0])).toarray().tolist() == [
        [1, 0, 1],
        [0, 0, 1],
    ]


@pytest.mark.parametrize(
    ("error", "match", "call"),
    [
        (ParameterError, "size=0", lambda: um.data.group_randomly(5, 0)),
        (ParameterError, "n_samples=-1", lambda: um.data.group_randomly(-1, 2)),
        (ParameterError, "random_state='a'", lambda: um.data.group_randomly(5, 2, "a")),
        (ParameterError, "depth=1.5", lambda: um.data.group_by_clusters(np.eye(4), 1.5)),
        (ParameterError, "depth=True", lambda: um.data.group_by_clusters(np.eye(4), True)),
        (ParameterError, "noise=-1", lambda: um.data.group_by_clusters(np.eye(4), 1, -1)),
        (ParameterError, "noise=nan", lambda: um.data.group_by_clusters(np.eye(4), 1, np.nan)),
        (FeaturesError, "no rows", lambda: um.data.group_by_clusters(np.empty((0, 3)), 0)),
        (FeaturesError, "NaN", lambda: um.data.group_by_clusters([[np.nan]], 0)),
        (ParameterError, "merge='bag'", lambda: um.data.aggregate([0], [0], merge="bag")),
        (ParameterError, "n_samples=4", lambda: um.data.group_randomly(4 * 10**12, 2)),
        (ParameterError, "merge=", lambda: um.data.aggregate([0], [0], np.array(["set", "list"]))),
        (GroupsError, "no group", lambda: um.data.aggregate([0, 1], [[0]])),
        (GroupsError, "2 rows", lambda: um.data.aggregate([0, 1], csr_matrix(np.ones((1, 3))))),
    ],
)
def test_bad_input_is_named(error, match, call):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("width", [5, 400])
def test_huge_values_are_clustered_as_others(width):
    """Squares of 1e30 overflow float32; only directions matter."""
    X = np.random.default_rng(0).standard_normal((16, width))
    X[8:] += 3
    wanted = um.data.group_by_clusters(X, 1, noise=0.01)
    found = um.data.group_by_clusters(X * 1e30, 1, noise=0.01)
    assert (found != wanted).nnz == 0
    assert um.data.group_by_clusters(X, 1, noise=1e300).sum() == 16
