"""If these fail, probabilities are too sure or too timid, or the ranking contradicts them."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import log_softmax

from umpteen.softmax import AdversarialSoftmax, SoftmaxRecipe
from umpteen.softmax.adversarial import DISCOUNTS
from umpteen.softmax.calibration import calibrate
from umpteen.softmax.initial_weights import SCALES, centroid_scores, likeliest_scale
from umpteen.softmax.noise import Noise
from umpteen.softmax.prediction import Answers
from umpteen.softmax.split import Samples, split_samples
from umpteen.softmax.weights import DenseScores
from umpteen.validation import check_seed

N_CLASSES = 12


def truth(n=3000, sharpness=0.3, prior=0.7, bend=0.0, seed=0):
    """Samples whose classes are drawn from calibrated scores, and the scores before that."""
    random = np.random.default_rng(seed)
    counts = np.round(2 ** np.arange(N_CLASSES)).astype(np.int64)
    counts[5] = 0  # never seen
    model = DenseScores.zeros(N_CLASSES, 4)
    model.weights[:] = random.normal(size=model.weights.shape) * 3
    X = random.normal(size=(n, 4)).astype(np.float32)
    scores = model.table(X)[:, counts > 0]
    logits = sharpness * scores + prior * np.log(counts[counts > 0]) + bend * curve(scores)
    p = np.exp(log_softmax(logits, axis=1))
    drawn = (random.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)
    y = np.flatnonzero(counts)[drawn]
    answers = Answers(model, Noise.uniform(N_CLASSES), counts, False, 0.0, 1)
    return answers, X, y, scores, counts


def curve(scores):
    return np.sign(scores) * np.log(1 + np.abs(scores))


@pytest.mark.parametrize("bend", [0.0, 0.8])
def test_the_calibration_that_made_the_data_is_found(bend):
    answers, X, y, _, _ = truth(12_000, bend=bend)
    found = calibrate(answers, X, csr_matrix(np.eye(N_CLASSES)[y]))
    assert found.sharpness == pytest.approx(0.3, abs=0.04)
    assert found.prior == pytest.approx(0.7, abs=0.05)
    assert found.bend == pytest.approx(bend, abs=0.15)


def test_a_higher_score_is_never_worth_less():
    """The likeliest bend is far below 0 here, where probabilities would fall with scores."""
    answers, X, _, scores, counts = truth(400, sharpness=0.1, prior=0.0)
    worst = np.flatnonzero(counts)[scores.argmin(axis=1)]
    found = calibrate(answers, X, csr_matrix(np.eye(N_CLASSES)[worst]))
    grid = np.linspace(-30, 30, 1001)
    assert (np.diff(found.sharpness * grid + found.bend * curve(grid)) > 0).all()


def test_samples_come_from_all_over_the_split(monkeypatch):
    """In files, similar samples often follow one another: the first ones are not like all."""
    monkeypatch.setattr("umpteen.softmax.calibration._MOST_SCORES", 0)
    answers, X, y, _, _ = truth(2_000)
    Y = csr_matrix(np.eye(N_CLASSES)[y])
    assert calibrate(answers, X, Y) == calibrate(answers, X[::10], Y[::10])


@pytest.mark.parametrize("several", [False, True])
def test_no_other_numbers_are_likelier(several):
    answers, X, y, scores, counts = truth(300)
    Y = np.eye(N_CLASSES)[y]
    if several:
        Y[::3, 1] = 1
    shares = (Y / Y.sum(axis=1, keepdims=True))[:, counts > 0]

    def loss(at):
        logits = at[0] * scores + at[1] * np.log(counts[counts > 0]) + at[2] * curve(scores)
        logs = log_softmax(logits, axis=1)
        return -(shares * logs).sum() + 0.5 * ((at[0] - 1) ** 2 + at[1] ** 2 + at[2] ** 2)

    found = calibrate(answers, X, csr_matrix(Y))
    best = minimize(loss, [0.5, 0.5, 0.5], method="BFGS").x
    np.testing.assert_allclose(found, best, atol=5e-3)


def overlapping(n=2400, n_classes=60, seed=0):
    random = np.random.default_rng(seed)
    centers = random.normal(size=(n_classes, 16))
    y = np.minimum(random.geometric(0.06, n) - 1, n_classes - 1)
    return (centers[y] + 0.9 * random.normal(size=(n, 16))).astype(np.float32), y


def test_ranking_and_probability_are_one():
    """Before, the two disagreed about the best class in a third of all cases."""
    X, y = overlapping()
    model = AdversarialSoftmax(noise="frequency", epochs=3, verbose=False).fit(X[:1800], y[:1800])
    top = model.predict_topk(X[1800:], k=5)
    logs = model.predict_log_proba(X[1800:], top.labels)
    np.testing.assert_allclose(top.scores, np.exp(logs), rtol=1e-4)
    plain = AdversarialSoftmax(
        noise="frequency", epochs=3, recipe=SoftmaxRecipe(calibrate=False), verbose=False
    ).fit(X[:1800], y[:1800])
    assert (plain.temperature_, plain.prior_weight_, plain.bend_) == (1.0, 0.0, 0.0)
    after, before = (each.predict_log_proba(X[1800:], y[1800:]).mean() for each in (model, plain))
    assert after > before
    confidence = top.scores[:, 0].mean()
    assert confidence == pytest.approx((top.labels[:, 0] == y[1800:]).mean(), abs=0.08)


def test_a_discount_is_chosen_on_top_of_the_calibration():
    """Which weighs frequencies itself: they would be discounted twice."""
    X, y = overlapping()
    model = AdversarialSoftmax(
        noise="frequency", frequency_discount="auto", epochs=2, verbose=False,
        recipe=SoftmaxRecipe(validation_fraction=0.3),
    ).fit(X, y)  # fmt: skip
    _, validation = split_samples(X, csr_matrix(np.eye(60)[y]), 0.3, check_seed(0))
    every = np.tile(np.arange(60), (len(validation), 1))
    logs, own = model.predict_log_proba(validation.X, every), validation.Y.indices
    precision = {
        discount: ((logs - discount * np.log(np.maximum(model.counts_, 1))).argmax(1) == own).mean()
        for discount in DISCOUNTS
    }
    assert model.frequency_discount_ == max(precision, key=precision.get)


def test_more_samples_leave_the_calibration():
    X, y = overlapping(800)
    model = AdversarialSoftmax(noise="frequency", epochs=2, verbose=False).fit(X, y)
    before = model.temperature_, model.prior_weight_, model.bend_
    assert model.temperature_ != 1.0
    model.partial_fit(X[:50], y[:50])
    assert (model.temperature_, model.prior_weight_, model.bend_) == before


def test_the_scale_of_the_start_is_the_likeliest():
    X, y = overlapping()
    Y = csr_matrix(np.eye(60)[y])
    training, validation = Samples(X[:2000], Y[:2000]), Samples(X[2000:], Y[2000:])
    seen = training.counts > 0
    kept = seen[y[2000:]]
    validation = Samples(validation.X[kept], validation.Y[kept])
    likelihoods = []
    for scale in SCALES:
        scores = centroid_scores(training.X, training.Y, scale).table(validation.X)
        scores[:, ~seen] = -np.inf
        logs = log_softmax(scores, axis=1)
        likelihoods.append(logs[np.arange(len(logs)), y[2000:][kept]].mean())
    assert likeliest_scale(training, validation) == SCALES[int(np.argmax(likelihoods))]


def test_a_start_that_is_better_is_begun_from_again_with_smaller_steps():
    """Before, a learning rate that is too large ended in the untrained start."""
    X, y = overlapping()
    model = AdversarialSoftmax(noise="frequency", learning_rate=20.0, epochs=9, verbose=False)
    model.fit(X[:1800], y[:1800])
    assert max(model.validation_scores_[1:]) >= model.validation_scores_[0]
