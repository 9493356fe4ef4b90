"""Initial weights are centroids: against the definition, row by row."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from umpteen import AdversarialSoftmax
from umpteen.softmax import SoftmaxRecipe
from umpteen.softmax.initial_weights import centroid_scores
from umpteen.softmax.split import split_samples
from umpteen.validation import check_seed


def data(n=60, n_classes=7, n_features=9):
    """Class 5 has no samples; the last sample has two labels."""
    random = np.random.default_rng(4)
    y = random.choice([0, 1, 2, 3, 4, 6], n)
    Y = np.eye(n_classes)[y]
    Y[-1, :2] = 1
    X = np.where(random.random((n, n_features)) < 0.3, random.normal(size=(n, n_features)), 0)
    return X.astype(np.float32), csr_matrix(Y)


def literal(X, Y, scale):
    length = np.sqrt((X**2).sum(axis=1).mean())
    weights = np.zeros((Y.shape[1], X.shape[1]))
    for label in range(Y.shape[1]):
        centroid = sum((row for row, own in zip(X, Y, strict=True) if own[label]), np.zeros(9))
        if centroid.any():
            weights[label] = scale * centroid / np.linalg.norm(centroid) / length
    return weights


def test_sparse_scores_are_cosines_with_centroids():
    X, Y = data()
    scores = centroid_scores(csr_matrix(X), Y, 10.0)
    np.testing.assert_allclose(scores.weights.toarray(), literal(X, Y.toarray(), 10.0), atol=1e-5)
    assert not scores.biases.any()


def test_dense_scores_are_cosines_relative_to_the_mean(monkeypatch):
    monkeypatch.setattr("umpteen.softmax.initial_weights._BLOCK_CLASSES", 3)
    X, Y = data()
    scores = centroid_scores(X + 5, Y, 10.0)
    centred = X - X.mean(axis=0)
    expected = centred @ literal(centred, Y.toarray(), 10.0).T
    np.testing.assert_allclose(scores.table(X + 5), expected, atol=1e-3)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
@pytest.mark.parametrize("scale", [0.0, 10.0])
def test_rows_without_features_start_at_zero(form, scale):
    X, Y = data()
    scores = centroid_scores(form(np.zeros_like(X)), Y, scale)
    assert not scores.table(form(X)).any()


def test_a_centroid_scores_is_worth_epochs():
    random = np.random.default_rng(0)
    centers = random.normal(size=(200, 30))
    y, z = random.integers(0, 200, (2, 1500))
    X, Z = (centers[each] + 0.5 * random.normal(size=(1500, 30)) for each in (y, z))
    far, near = (
        AdversarialSoftmax(recipe=SoftmaxRecipe(centroid_scale=scale), epochs=1, verbose=False)
        .fit(X, y)
        .score(Z, z)
        for scale in (0.0, 10.0)
    )
    assert near > far + 0.1


def test_the_start_is_kept_where_no_epoch_is_better():
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(100), 3)
    centers = random.normal(size=(100, 20))
    X = centers[y] + 0.1 * random.normal(size=(300, 20))
    model = AdversarialSoftmax(learning_rate=50.0, epochs=2, verbose=False)
    model.set_params(recipe__centroid_scale=10.0)
    with pytest.warns(UserWarning, match="no epoch of training was better than the start"):
        model.fit(X, y)
    start = centroid_scores(*_training_split(X, y), 10.0)
    np.testing.assert_array_equal(model.scores_.weights, start.weights)
    assert len(model.validation_scores_) == 3
    assert max(model.validation_scores_[1:]) < model.validation_scores_[0]
    assert model.score(X, y) > 0.95


def _training_split(X, y):
    Y = csr_matrix(np.eye(100)[y])
    training = split_samples(X.astype(np.float32), Y, 0.05, check_seed(0))[0]
    return training.X, training.Y
