"""The ranker of candidates by tree and label texts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit

from umpteen.kernels.blending import N_EVIDENCE
from umpteen.linear.text_ranker import TextRanker

N, N_CANDIDATES = 300, 8


@pytest.fixture(scope="module")
def problem():
    """Candidates of samples: relevant ones have a high second column, or a name in the text."""
    random = np.random.default_rng(0)
    evidence = random.random((N, N_CANDIDATES, N_EVIDENCE), dtype=np.float32)
    evidence[..., 1] = np.log(evidence[..., 0])
    chances = expit(3 * evidence[..., 1] + 4 * (evidence[..., 6] > 0.8))
    return evidence, random.random(chances.shape) < chances


def fitted(evidence, relevant, near=None):
    pairs = evidence.reshape(-1, N_EVIDENCE)
    return TextRanker.fitted(pairs, relevant.ravel(), np.full(len(evidence), N_CANDIDATES), near)


def test_its_log_odds_are_the_mean_of_both_rankers(problem):
    evidence, _ = problem
    ranker = fitted(*problem)
    smooth = logit(ranker.quadratic.probabilities(evidence).astype(np.float64))
    steps = ranker.trees.log_odds(evidence) + evidence[..., 1] / 2
    expected = expit((smooth + steps) / 2)
    np.testing.assert_allclose(ranker.probabilities(evidence), expected, rtol=1e-4, atol=1e-9)


def test_evidence_beyond_what_it_learned_from_is_cut(problem):
    evidence, _ = problem
    ranker = fitted(*problem)
    least, most = evidence.min(axis=(0, 1)), evidence.max(axis=(0, 1))
    wild = evidence * 3 - 1
    expected = ranker.probabilities(np.clip(wild, least, most))
    np.testing.assert_array_equal(ranker.probabilities(wild), expected)


def test_a_ranker_of_an_earlier_version_is_the_quadratic_one(problem):
    evidence, _ = problem
    ranker = replace(fitted(*problem), trees=None)
    expected = ranker.quadratic.probabilities(evidence)
    np.testing.assert_array_equal(ranker.probabilities(evidence), expected)


def test_a_start_nearby_leads_to_the_same_ranker(problem):
    evidence, relevant = problem
    start = fitted(evidence[::2], relevant[::2])
    far, near = fitted(evidence, relevant), fitted(evidence, relevant, start)
    np.testing.assert_allclose(near.probabilities(evidence), far.probabilities(evidence), atol=1e-3)


def test_samples_without_a_relevant_candidate_count_for_probabilities_only(problem):
    """Which candidate is best is learned from the others; how likely it is, from all."""
    evidence, relevant = problem
    none = np.zeros_like(relevant)
    more = fitted(np.concatenate([evidence, evidence]), np.concatenate([relevant, none]))
    ranker = fitted(evidence, relevant)
    np.testing.assert_allclose(
        more.quadratic.weights[1:] / np.linalg.norm(more.quadratic.weights[1:]),
        ranker.quadratic.weights[1:] / np.linalg.norm(ranker.quadratic.weights[1:]),
        atol=1e-3,
    )
    assert more.probabilities(evidence).mean() < 0.7 * ranker.probabilities(evidence).mean()


def test_trees_learn_what_is_to_be_added_to_the_trees_score():
    """With a score that says all, they do not say it again."""
    random = np.random.default_rng(1)
    evidence = random.random((2_000, 1, N_EVIDENCE), dtype=np.float32)
    evidence[..., 1] = random.normal(0, 6, (2_000, 1))
    relevant = random.random((2_000, 1)) < expit(evidence[..., 1] / 2)
    ranker = TextRanker.fitted(evidence[:, 0], relevant[:, 0], np.ones(2_000, np.int64))
    slope, _ = np.polyfit(evidence[:, 0, 1], ranker.trees.log_odds(evidence)[:, 0], 1)
    assert abs(slope) < 0.05
