"""Theorem 1 on a tabular model: what training converges to is known exactly."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from umpteen import AdversarialSoftmax
from umpteen.softmax import NoiseTree, SoftmaxRecipe

N_KINDS, N_CLASSES = 4, 6
QUIET = {"n_jobs": 1, "verbose": False}
PLAIN = SoftmaxRecipe(validation_fraction=0.0, regularizer=0.0)


@pytest.fixture(scope="module")
def table():
    """How often each class comes with each kind of sample; all of them do."""
    random = np.random.default_rng(2)
    return 1 + (200 * random.dirichlet(np.full(N_CLASSES, 0.7), N_KINDS)).astype(int)


def fitted(table, **parameters):
    kinds, classes = (np.repeat(ids.ravel(), table.ravel()) for ids in np.indices(table.shape))
    X = csr_matrix(np.eye(N_KINDS, dtype=np.float32)[kinds])
    chosen = {"epochs": 200, "learning_rate": 0.3, "n_negatives": 10, **QUIET, **parameters}
    return AdversarialSoftmax(**chosen, recipe=PLAIN).fit(X, classes)


def answers(model):
    every = np.tile(np.arange(N_CLASSES), (N_KINDS, 1))
    return model.predict_log_proba(csr_matrix(np.eye(N_KINDS, dtype=np.float32)), every)


def uncorrected(model):
    return log_softmax(model.scores_.table(csr_matrix(np.eye(N_KINDS, dtype=np.float32))), axis=1)


def largest_error(found, table):
    return np.abs(found - np.log(table / table.sum(axis=1, keepdims=True))).max()


@pytest.mark.parametrize("noise", ["tree", "frequency", "uniform"])
def test_corrected_scores_of_negative_sampling_are_those_of_a_softmax(table, noise):
    """Eq. 5; without the correction only uniform noise gets there."""
    chosen = NoiseTree(regularizer=0.1, verbose=False) if noise == "tree" else noise
    model = fitted(table, objective="negative_sampling", noise=chosen)
    assert largest_error(answers(model), table) < 0.15
    if noise == "uniform":
        assert largest_error(uncorrected(model), table) < 0.15
    else:
        assert largest_error(uncorrected(model), table) > 0.5


@pytest.mark.parametrize(
    "parameters",
    [
        {"objective": "nce"},
        {"objective": "sampled_softmax", "n_negatives": 20},
        {"objective": "softmax"},
    ],
    ids=["nce", "sampled", "softmax"],
)
def test_other_objectives_need_no_correction(table, parameters):
    """Sampled softmax only as far as the logarithm of an estimated sum allows."""
    assert largest_error(answers(fitted(table, **parameters)), table) < 0.2


def test_full_softmax_is_logistic_regression():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 4)).astype(np.float32)
    y = np.argmax(X @ random.normal(size=(4, 5)) + random.gumbel(size=(400, 5)), axis=1)
    recipe = replace(PLAIN, batch_size=400)
    ours = AdversarialSoftmax(objective="softmax", epochs=300, recipe=recipe, **QUIET).fit(X, y)
    theirs = LogisticRegression(C=1e6, max_iter=1000).fit(X, y)
    every = np.tile(np.arange(5), (len(X), 1))
    probabilities = np.exp(ours.predict_log_proba(X, every))
    np.testing.assert_allclose(probabilities, theirs.predict_proba(X), atol=0.02)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.98
