import numpy as np
import pytest
from scipy.sparse import csr_matrix

from umpteen import NearestCentroid

from .contract.cases import noise


def cosines(X, Y):
    """The readable version: all centroids and all cosines, as dense tables of float64."""
    samples = _unit_rows(X.toarray().astype(np.float64))
    return samples @ _unit_rows(Y.toarray().T @ samples).T


def _unit_rows(table):
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    return np.divide(table, norms, out=np.zeros_like(table), where=norms > 0)


@pytest.mark.parametrize("dense", [True, False])
def test_scores_are_the_cosines(dense):
    """A baseline that is off makes every comparison with it worthless."""
    X, Y = noise()
    expected = cosines(X, Y)
    X = X.toarray() if dense else X
    scores = NearestCentroid().fit(X, Y).predict_topk(X, k=Y.shape[1]).to_csr(Y.shape[1])
    np.testing.assert_allclose(scores.toarray(), expected, atol=1e-6)


def test_a_sample_without_features_gets_no_label():
    model = NearestCentroid().fit(csr_matrix([[1, 0], [0, 1]]), [0, 1])
    assert model.predict_topk(csr_matrix((1, 2)), k=2).labels.tolist() == [[-1, -1]]
    assert model.predict(csr_matrix((1, 2))).tolist() == [-1]


def test_labels_that_share_no_feature_are_not_offered():
    model = NearestCentroid().fit(csr_matrix([[1, 0], [0, 1]]), [0, 1])
    assert model.predict_topk(csr_matrix([[3, 0]]), k=2).labels.tolist() == [[0, -1]]


def test_opposite_directions_score_below_zero():
    model = NearestCentroid().fit(np.array([[1.0, 0.0], [-1.0, 0.0]]), [0, 1])
    top = model.predict_topk(np.array([[2.0, 0.0]]), k=2)
    assert top.scores.tolist() == [[1.0, -1.0]]
