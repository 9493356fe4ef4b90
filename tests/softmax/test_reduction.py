"""The tree sees only what the reduction leaves: a wrong direction makes all negatives easy."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import eigh
from scipy.sparse import csr_matrix
from sklearn.decomposition import PCA

from umpteen.softmax import NoiseTree, reduction
from umpteen.softmax.reduction import Reduction


def rows_with_few_directions(n, d, rank, seed=0):
    random = np.random.default_rng(seed)
    strength = 10.0 * 0.7 ** np.arange(rank)
    made = random.standard_normal((n, rank)) * strength @ random.standard_normal((rank, d))
    return (made + 3 + 0.1 * random.standard_normal((n, d))).astype(np.float32)


def up_to_sign(Z):
    return Z * np.sign(Z[np.abs(Z).argmax(axis=0), np.arange(Z.shape[1])])


def expected_by_sklearn(X, dim):
    Z = PCA(dim, whiten=True, svd_solver="full").fit_transform(X.astype(np.float64))
    return up_to_sign(Z * np.sqrt(len(X) / (len(X) - 1)))  # variance over n, not n - 1


def test_dense_rows_get_their_principal_components_at_unit_variance():
    X = rows_with_few_directions(300, 20, 6)
    Z = Reduction.of(X, 5, seed=0)(X)
    np.testing.assert_allclose(up_to_sign(Z), expected_by_sklearn(X, 5), atol=1e-3)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(5), atol=1e-4)


@pytest.mark.parametrize("as_sparse", [True, False])
def test_the_randomised_way_finds_the_same(monkeypatch, as_sparse):
    """Sparse rows are centred as dense ones are, without ever being made dense."""
    monkeypatch.setattr(reduction, "_MOST_EXACT", 0)
    X = rows_with_few_directions(300, 40, 6)
    X[np.abs(X) < 3] = 0
    Z = Reduction.of(csr_matrix(X) if as_sparse else X, 5, seed=0)(X)
    np.testing.assert_allclose(up_to_sign(Z), expected_by_sklearn(X, 5), atol=5e-3)


def test_sparse_rows_stay_sparse():
    """Centred rows of 200,000 features would take gigabytes."""
    X = sparse.random(2000, 200_000, density=1e-4, format="csr", dtype=np.float32, rng=0)
    tracemalloc.start()
    Z = Reduction.of(X, 4, seed=0)(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    np.testing.assert_allclose(Z.std(axis=0), 1, rtol=1e-3)


def test_sparse_and_dense_rows_are_reduced_to_the_same_bits_each_by_itself():
    X = rows_with_few_directions(50, 20, 6)
    X[X < 0] = 0
    reduce = Reduction.of(X, 5, seed=0)
    together = reduce(X)
    np.testing.assert_array_equal(reduce(csr_matrix(X)), together)
    np.testing.assert_array_equal(np.vstack([reduce(X[i : i + 1]) for i in range(50)]), together)


def test_threads_and_blocks_change_nothing(monkeypatch):
    X = rows_with_few_directions(50, 20, 6)
    reduce = Reduction.of(X, 5, seed=0)
    one = reduce(X, n_jobs=1)
    monkeypatch.setattr(reduction, "_BLOCK_ROWS", 7)
    np.testing.assert_array_equal(reduce(X, n_jobs=3), one)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
@pytest.mark.parametrize(
    ("X", "rank"),
    [
        (np.full((5, 3), 0.1), 0),
        (np.full((7, 3), 1e30), 0),
        (np.zeros((4, 2)), 0),
        (np.ones((1, 6)), 0),
        (np.outer(np.arange(9), [1, 2, 3]), 1),
        (np.eye(3), 2),
        (1e30 * np.eye(4), 3),
        (1e-30 * np.eye(4), 3),
    ],
)
def test_directions_in_which_nothing_differs_are_left_out(form, X, rank):
    X = form(X.astype(np.float32))
    Z = Reduction.of(X, 16, seed=0)(X)
    assert Z.shape == (X.shape[0], rank)
    np.testing.assert_allclose(Z.std(axis=0), 1, rtol=1e-3)


def test_a_large_mean_does_not_drown_the_differences():
    X = rows_with_few_directions(200, 5, 2)
    moved = (X * 64).round() / 64 + 2**16  # exact in float32
    near = Reduction.of(moved - 2**16, 2, seed=0)(moved - 2**16)
    far = Reduction.of(moved, 2, seed=0)(moved)
    np.testing.assert_allclose(up_to_sign(far), up_to_sign(near), atol=1e-3)


def test_rows_far_from_all_training_rows_stay_finite():
    reduce = Reduction.of(np.array([[0, 1e-3], [0, 2e-3]], np.float32), 2, seed=0)
    Z = reduce(np.array([[3e38, -3e38]], np.float32))
    assert np.isfinite(Z).all()


def classes_in_few_directions(seed=0):
    """Ten features tell thirty classes apart; five others vary a lot and say nothing."""
    random = np.random.default_rng(seed)
    y = random.integers(30, size=900)
    X = 0.3 * random.standard_normal((900, 40))
    X[:, :10] += random.standard_normal((30, 10))[y]
    X[:, 10:15] += 20 * random.standard_normal((900, 5))
    turn = np.linalg.qr(random.standard_normal((40, 40)))[0]
    return (X @ turn + 3).astype(np.float32), y


def literal_discriminants(X, y, dim):
    """Class means against all rows, as a generalised eigenvalue problem; rows have noise only."""
    X = X.astype(np.float64) - X.mean(0, dtype=np.float64)
    total = X.T @ X / len(X)
    means = np.stack([X[y == each].mean(0) for each in range(y.max() + 1)])
    between = (means * np.bincount(y)[:, None]).T @ means / len(X)
    vectors = eigh(between, total)[1]
    return X @ vectors[:, ::-1][:, :dim]


@pytest.mark.parametrize("as_sparse", [False, True])
def test_discriminants_are_those_of_fisher(as_sparse):
    X, y = classes_in_few_directions()
    Y = csr_matrix((np.ones(len(y)), (np.arange(len(y)), y)))
    given = csr_matrix(X) if as_sparse else X
    Z = Reduction.between_classes(given, Y, 5, seed=0)(given)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-3)
    np.testing.assert_allclose(np.cov(Z.T, bias=True), np.eye(5), atol=0.01)
    expected = up_to_sign(literal_discriminants(X, y, 5))
    np.testing.assert_allclose(up_to_sign(Z), expected, atol=0.02)


def test_a_tree_finds_classes_that_principal_components_hide():
    X, y = classes_in_few_directions()
    trees = [
        NoiseTree(dim=5, directions=each, verbose=False).fit(X[:700], y[:700])
        for each in ("principal", "discriminant")
    ]
    plain, supervised = (tree.log_prob(X[700:], y[700:]).mean() for tree in trees)
    assert plain < -3  # log(1/30) is -3.4
    assert supervised > -1
