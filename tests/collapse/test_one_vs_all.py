"""One classifier per label: scikit-learn's weights, and the best threshold of all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import umpteen as um
from umpteen.collapse import OneVsAll
from umpteen.collapse.thresholds import f1_threshold, subset_threshold
from umpteen.errors import FeaturesError, LabelsError, NotFittedError, ParameterError
from umpteen.metrics import micro_f1, subset_accuracy


def problem(n=200, d=5, n_labels=4, seed=0):
    random = np.random.default_rng(seed)
    features = 3 * random.standard_normal((n, d))
    scores = features @ random.standard_normal((d, n_labels)) - 3
    return features, (scores + random.logistic(size=scores.shape) > 0).astype(int)


def scored(n, n_labels, seed):
    """Scores with ties, and labels that go with them somewhat."""
    random = np.random.default_rng(seed)
    scores = np.round(2 * random.standard_normal((n, n_labels)), 1)
    return scores + random.standard_normal(scores.shape) > 0.5, scores


@pytest.mark.parametrize("cost", [0.1, 10.0])
def test_weights_are_those_of_scikit_learn(cost, monkeypatch):
    monkeypatch.setattr("umpteen.collapse.one_vs_all._BLOCK_LABELS", 3)
    features, Y = problem()
    model = OneVsAll(cost=cost, max_iter=1000).fit(features, Y)
    for label in range(Y.shape[1]):
        other = LogisticRegression(C=cost, tol=1e-8, max_iter=1000).fit(features, Y[:, label])
        np.testing.assert_allclose(model.weight_[label], other.coef_[0], rtol=0.02, atol=0.005)
        np.testing.assert_allclose(model.bias_[label], other.intercept_[0], rtol=0.02, atol=0.01)


@given(st.integers(1, 12), st.integers(1, 5), st.booleans(), st.integers(0, 1000))
def test_no_threshold_makes_more_sets_right(n, n_labels, at_least_one, seed):
    relevant, scores = scored(n, n_labels, seed)

    def right(threshold):
        chosen = scores >= threshold
        if at_least_one:
            chosen[np.arange(n), scores.argmax(axis=1)] |= ~chosen.any(axis=1)
        return (chosen == relevant).all(axis=1).sum()

    blocks = [(relevant[:3], scores[:3]), (relevant[3:], scores[3:])]
    found = subset_threshold(blocks, at_least_one)
    every = [-100.0, 100.0, *(np.unique(scores) + 1e-6), *np.unique(scores)]
    best = max(right(each) for each in every)
    # Where the best label is shared by several, an empty answer is not filled as foreseen.
    unclear = at_least_one and any((row == row.max()).sum() > 1 for row in scores)
    assert right(found) == best or unclear


@given(st.integers(1, 12), st.integers(1, 5), st.integers(0, 1000))
def test_no_threshold_has_a_better_f1(n, n_labels, seed):
    relevant, scores = scored(n, n_labels, seed)

    def f1(threshold):
        chosen = scores >= threshold
        return 2 * (chosen & relevant).sum() / max(chosen.sum() + relevant.sum(), 1)

    found = f1_threshold([(relevant[:3], scores[:3]), (relevant[3:], scores[3:])])
    assert f1(found) == pytest.approx(max(f1(each - 1e-3) for each in np.unique(scores)))


def test_a_chosen_threshold_is_better_at_its_goal_than_a_half(monkeypatch):
    monkeypatch.setattr("umpteen.collapse.one_vs_all._BLOCK_SCORES", 50)
    features, Y = problem(400)
    half, subset, f1 = (
        OneVsAll(threshold=threshold).fit(features, Y).predict(features)
        for threshold in (0.5, "subset", "f1")
    )
    assert subset_accuracy(Y, subset) >= max(subset_accuracy(Y, half), subset_accuracy(Y, f1))
    assert micro_f1(Y, f1) > micro_f1(Y, half)


def test_predictions_are_probabilities_above_the_threshold(monkeypatch):
    monkeypatch.setattr("umpteen.collapse.one_vs_all._BLOCK_SCORES", 50)
    features, Y = problem()
    model = OneVsAll(threshold=0.3).fit(features, Y)
    probabilities = expit(features.astype(np.float32) @ model.weight_.T.astype(float) + model.bias_)
    np.testing.assert_array_equal(model.predict(features).toarray() > 0, probabilities >= 0.3)
    filled = OneVsAll(threshold=0.3, at_least_one=True).fit(features, Y).predict(features)
    assert np.diff(filled.indptr).min() == 1


def test_the_threshold_is_chosen_on_validation_samples():
    features, Y = problem()
    nothing = np.zeros_like(Y)
    assert OneVsAll().fit(features, Y, validation=(features, nothing)).predict(features).nnz == 0


@pytest.mark.parametrize("offset", [1e3, 1e4, 1e6])
def test_features_far_from_the_origin_are_learned(offset):
    """What all samples have in common says nothing, but hides the rest from a descent."""
    random = np.random.default_rng(0)
    features = np.round(64 * random.standard_normal((400, 8))) / 16  # as exact beside the offset
    Y = (features @ random.standard_normal((8, 4)) - 1 > 0).astype(int)
    plain, moved = (
        OneVsAll(cost=10.0, max_iter=500).fit(each, Y).predict(each)
        for each in (features, features + offset)
    )
    assert subset_accuracy(Y, plain) > 0.98
    assert subset_accuracy(Y, moved) > subset_accuracy(Y, plain) - 0.01


def test_a_threshold_far_from_the_usual_is_kept():
    """Scores of 100 and more are probabilities of 1: no threshold among them tells them apart."""
    features = np.array([[-1.0], [-0.9], [9.0], [10.0]])
    model = OneVsAll(cost=1e100, max_iter=1000).fit(features, [[], [], [0], [0]])
    model.weight_, model.bias_ = np.array([[100.0]], np.float32), np.array([0.0])
    model.threshold_ = model._choose(features, csr_matrix([[0], [0], [1], [1]]))
    assert model.predict(features).toarray().ravel().tolist() == [0, 0, 1, 1]


def test_saved_it_answers_the_same(tmp_path):
    features, Y = problem()
    model = OneVsAll().fit(features, Y)
    um.save(model, tmp_path / "decoder")
    again = um.load(tmp_path / "decoder").predict(features)
    np.testing.assert_array_equal(model.predict(features).toarray(), again.toarray())


def test_labels_that_all_or_no_samples_have_are_learned():
    features, Y = problem()
    Y[:, 0], Y[:, 1] = 0, 1
    answers = OneVsAll().fit(features, Y).predict(features).toarray()
    assert answers[:, 0].sum() == 0
    assert answers[:, 1].all()


def test_bad_input_is_named():
    features, Y = problem()
    with pytest.raises(NotFittedError):
        OneVsAll().predict(features)
    with pytest.raises(FeaturesError, match="5 features"):
        OneVsAll().fit(features, Y).predict(features[:, :3])
    with pytest.raises(LabelsError, match="no samples"):
        OneVsAll().fit(features[:0], Y[:0])
    with pytest.raises(ParameterError, match="threshold"):
        OneVsAll(threshold=1.5).fit(features, Y)
    assert OneVsAll().fit(features, Y).predict(features[:0]).shape == (0, 4)
