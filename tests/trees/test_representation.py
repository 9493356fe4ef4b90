"""If a label's row is wrong, labels that have nothing in common stand together in the tree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix

from umpteen.trees import label_representation


def unit(table):
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    return np.divide(table, norms, out=np.zeros_like(table), where=norms > 0)


def by_definition(X, Y, features=None, weight=0.5):
    """The same on dense tables in float64."""
    of_samples = unit(Y.T @ unit(X.astype(np.float64)))
    if features is None:
        return of_samples
    return unit((1 - weight) * of_samples + weight * unit(features.astype(np.float64)))


def tables(n_rows, n_columns, values=(0.0, 0.0, 1.0, 2.5)):
    return arrays(np.float32, (n_rows, n_columns), elements=st.sampled_from(values))


sizes = st.tuples(st.integers(1, 8), st.integers(1, 6), st.integers(1, 7))
problems = sizes.flatmap(
    lambda size: st.tuples(
        tables(size[0], size[2]), tables(size[0], size[1], (0.0, 1.0)), tables(size[1], size[2])
    )
)


@given(problems)
def test_a_label_is_the_mean_direction_of_its_samples(problem):
    X, Y, _ = problem
    rows = label_representation(csr_matrix(X), csr_matrix(Y))
    np.testing.assert_allclose(rows.toarray(), by_definition(X, Y), atol=1e-6)


@given(problems, st.sampled_from([0.0, 0.2, 0.5, 1.0]))
def test_label_features_are_blended_in_by_their_weight(problem, weight):
    X, Y, features = problem
    rows = label_representation(csr_matrix(X), csr_matrix(Y), csr_matrix(features), weight)
    np.testing.assert_allclose(rows.toarray(), by_definition(X, Y, features, weight), atol=1e-6)


def test_a_label_without_samples_stands_by_its_features():
    X, Y = np.eye(3, dtype=np.float32), np.eye(3, 4, dtype=np.float32)
    features = np.array([[0, 0, 0], [0, 1, 0], [0, 1, 0], [3, 0, 4]], np.float32)
    rows = label_representation(csr_matrix(X), csr_matrix(Y), features).toarray()
    np.testing.assert_allclose(rows[3], [0.6, 0, 0.8], atol=1e-6)
    np.testing.assert_allclose(rows[0], [1, 0, 0], atol=1e-6)


@pytest.mark.parametrize("dense", [False, True])
def test_rows_are_ready_for_the_clustering(dense):
    random = np.random.default_rng(0)
    X = (random.random((30, 12)) * (random.random((30, 12)) < 0.3)).astype(np.float32)
    Y = csr_matrix((random.random((30, 20)) < 0.1).astype(np.float32))
    features = csr_matrix((random.random((20, 12)) < 0.2).astype(np.float32))
    for extra in (None, features):
        rows = label_representation(X if dense else csr_matrix(X), Y, extra)
        assert rows.dtype == np.float32
        assert rows.indices.dtype == rows.indptr.dtype == np.int32
        assert rows.has_canonical_format
        lengths = np.linalg.norm(rows.toarray(), axis=1)
        assert (np.isclose(lengths, 1, atol=1e-5) | (lengths == 0)).all()
