"""A probability that does not mean what it says leads people to trust the wrong labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpteen.base import TopK
from umpteen.metrics.reliability import reliability
from umpteen.tagger.calibration import RANKS, Calibration


def answers(scores):
    """Best first; every sample is given other labels."""
    scores = -np.sort(-np.atleast_2d(scores), axis=1)
    return TopK(np.tile(np.arange(scores.shape[1]), (len(scores), 1)), scores)


def with_gaps(top, lengths):
    """Some samples have fewer answers."""
    gone = np.arange(top.k) >= np.asarray(lengths)[:, None]
    return TopK(np.where(gone, -1, top.labels), np.where(gone, -np.inf, top.scores))


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@st.composite
def judged(draw):
    """Answers of any number and scale, right ones at random or by their score."""
    n, k = draw(st.integers(1, 60)), draw(st.integers(1, RANKS))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    scale, shift = draw(st.sampled_from([1e-6, 1.0, 1e6, 1e30])), draw(st.sampled_from([0, -5, 5]))
    z = random.normal(size=(n, k)).round(draw(st.sampled_from([0, 1, 6])))
    top = with_gaps(answers((z + shift) * scale), random.integers(1, k + 1, n))
    chance = draw(st.sampled_from([0.0, 0.3, 1.0]))
    by_score = random.random((n, k)) < sigmoid(-np.sort(-z, axis=1))
    hits = by_score if draw(st.booleans()) else random.random((n, k)) < chance
    return top, hits & (top.labels >= 0)


@settings(max_examples=50)
@given(judged())
def test_the_order_of_labels_never_changes_and_no_probability_is_certain(case):
    top, hits = case
    calibration = Calibration.learn(top, hits)
    found = calibration(top)
    np.testing.assert_array_equal(found.labels, top.labels)
    given_ = top.labels >= 0
    assert ((found.scores[given_] > 0) & (found.scores[given_] < 1)).all()
    assert (found.scores[~given_] == -np.inf).all()
    steps = np.diff(np.where(given_, found.scores, 0), axis=1)
    assert (steps <= 0).all()


@settings(max_examples=20)
@given(judged(), judged())
def test_other_samples_keep_their_order_too(case, other):
    """What is asked later is not what was learned from: scores beyond all that were seen."""
    calibration = Calibration.learn(*case)
    top = TopK(other[0].labels, np.where(other[0].labels >= 0, 3 * other[0].scores, -np.inf))
    found = calibration(top)
    np.testing.assert_array_equal(found.labels, top.labels)
    assert (np.diff(np.where(top.labels >= 0, found.scores, 0), axis=1) <= 0).all()
    assert np.isfinite(found.scores[top.labels >= 0]).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("shift", [-3, 0])
def test_known_probabilities_are_found_on_any_scale(scale, shift):
    random = np.random.default_rng(0)
    parts = []
    for _ in range(2):
        z = -np.sort(-random.normal(-2, 2, (2000, RANKS)), axis=1)
        parts.append((answers((z + shift) * scale), random.random(z.shape) < sigmoid(z)))
    calibration = Calibration.learn(*parts[0])
    top, hits = parts[1]
    found = calibration(top).scores
    assert reliability(found.ravel(), hits.ravel()).expected_calibration_error < 0.02
    true = sigmoid(top.scores.astype(np.float64) / scale - shift)
    assert np.abs(found - true).mean() < 0.03


def test_a_label_among_many_strong_ones_is_not_what_it_is_alone():
    """One label is right per sample; the same score means less where there are rivals."""
    random = np.random.default_rng(1)
    n_rivals = random.integers(1, 6, 4000)
    scores = np.where(np.arange(6) < n_rivals[:, None], 0.9, 0.1) - np.arange(6) * 1e-3
    hits = np.zeros(scores.shape, bool)
    hits[np.arange(4000), random.integers(0, n_rivals)] = True
    top = answers(scores)
    found = Calibration.learn(top, hits)(top).scores
    alone, crowded = found[n_rivals == 1, 0].mean(), found[n_rivals == 5, 0].mean()
    assert alone > 0.8
    assert crowded < 0.35


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_all_right_or_all_wrong_is_close_to_certain(share):
    top = answers(np.random.default_rng(0).random((100, 5)))
    found = Calibration.learn(top, np.full((100, 5), bool(share)))(top).scores
    assert np.abs(found - share).max() < 0.03


def test_constant_scores_get_the_share_that_is_right():
    top = answers(np.full((200, 5), 0.4))
    hits = np.random.default_rng(0).random((200, 5)) < 0.3
    found = Calibration.learn(top, hits)(top).scores
    np.testing.assert_allclose(found, hits.mean(), atol=0.02)


def test_one_answer_is_no_evidence():
    top = answers([[0.7]])
    right = Calibration.learn(top, np.array([[True]]))(top).scores
    wrong = Calibration.learn(top, np.array([[False]]))(top).scores
    assert right[0, 0] == pytest.approx(0.75)
    assert wrong[0, 0] == pytest.approx(0.25)


def test_no_samples_are_no_crash():
    top = answers(np.random.default_rng(0).random((50, 5)))
    calibration = Calibration.learn(top, top.scores > 0.5)
    nothing = TopK(np.empty((0, 5), np.int32), np.empty((0, 5), np.float32))
    assert calibration(nothing) == nothing


def test_a_curve_that_falls_is_not_believed():
    """Scores that say the opposite of the truth give the overall share, never a reversed order."""
    random = np.random.default_rng(0)
    z = -np.sort(-random.normal(size=(500, 5)), axis=1)
    top = answers(z)
    found = Calibration.learn(top, random.random(z.shape) < sigmoid(-3 * z))(top).scores
    assert (np.diff(found, axis=1) <= 0).all()


def test_few_answers_still_tell_right_from_wrong():
    """Two labels and a hundred texts: ten held-out ones, of which one label each is right."""
    top = answers(np.random.default_rng(0).random((10, 2)) * 0.1 + [[0.9, 0.0]])
    found = Calibration.learn(top, np.tile([True, False], (10, 1)))(top).scores
    assert (found[:, 0] > 0.7).all()
    assert (found[:, 1] < 0.3).all()


@given(st.lists(st.floats(-3, 3, width=16), min_size=1, max_size=30), st.integers(0, 50))
def test_equal_probabilities_are_those_of_equal_scores(drawn, seed):
    """The order of equals is that of their ids, which only the classifier has seen to."""
    random = np.random.default_rng(seed)
    known = TopK(np.tile(np.arange(RANKS), (40, 1)), -np.sort(-random.normal(size=(40, RANKS))))
    steep = Calibration.learn(known, known.scores > 0.3)
    scores = -np.sort(-np.array([drawn], np.float32), axis=1)
    top = TopK(np.arange(len(drawn))[None], scores)
    found = steep(top)
    assert found.labels.tolist() == top.labels.tolist()
    p = found.scores[0]
    assert ((np.diff(p) < 0) == (np.diff(scores[0]) < 0)).all()
    assert ((np.diff(p) == 0) == (np.diff(scores[0]) == 0)).all()
    assert (p > 0).all()
    assert (p < 1).all()


def test_lowered_probabilities_are_hardly_lower():
    knots, heights = np.array([-1.0, 1.0]), np.array([0.01, 0.99])
    sure = Calibration(knots, heights, np.array([100.0, 0.0, 0.0, 0.0]))
    scores = np.linspace(3, 2, 200, dtype=np.float32)[None]
    p = sure(TopK(np.arange(200)[None], scores)).scores[0]
    assert (np.diff(p) < 0).all()
    assert p[0] == pytest.approx(p[-1], abs=2e-5)
