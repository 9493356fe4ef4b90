"""Candidates and boosted trees against literal versions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from umpteen.kernels.boosting import boost
from umpteen.kernels.joining import join_answers
from umpteen.ranking import BoostedTrees


def joined(labels, scores):
    """By dictionaries, a sample at a time."""
    n_members, n, k = labels.shape
    candidates = np.full((n, n_members * k), -1)
    evidence = np.zeros((n, n_members * k, 3 * n_members), np.float32)
    for row in range(n):
        found = sorted({label for label in labels[:, row].ravel().tolist() if label >= 0})
        candidates[row, : len(found)] = found
        for member in range(n_members):
            offered = {
                label: (score, 1 / (rank + 1))
                for rank, (label, score) in enumerate(
                    zip(labels[member, row], scores[member, row], strict=True)
                )
                if label >= 0
            }
            best = max((score for score, _ in offered.values()), default=0)
            lowest = min((score for score, _ in offered.values()), default=0)
            for place, label in enumerate(found):
                score, rank = offered.get(label, (lowest, 0))
                evidence[row, place, 3 * member : 3 * member + 3] = score, score - best, rank
    return candidates, evidence


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 6))
def test_candidates_are_those_of_all_members(seed, n_members, k):
    random = np.random.default_rng(seed)
    labels = np.full((n_members, 4, k), -1, np.int32)
    scores = np.full((n_members, 4, k), -np.inf, np.float32)
    for member in range(n_members):
        for row in range(4):
            n = random.integers(0, k + 1)
            labels[member, row, :n] = random.choice(8, n, replace=False)
            scores[member, row, :n] = -np.sort(-random.normal(size=n))
    found, expected = join_answers(labels, scores), joined(labels, scores)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def boosted(bins, targets, n_bins, n_trees, depth, rate, base, stride):
    """Newton boosting of symmetric trees, every question tried in turn."""
    margins, trees = np.full(len(bins), base), []
    for tree in range(n_trees):
        own = np.arange(len(bins)) % stride == tree % stride
        chances = expit(margins)
        slopes, curves = chances - targets, chances * (1 - chances)
        leaf = np.zeros(len(bins), int)
        questions = []
        for _ in range(depth):
            best = 0.0, 0, n_bins - 1
            for feature in range(bins.shape[1]):
                for cut in range(n_bins - 1):
                    right = bins[:, feature] > cut
                    gain = sum(
                        gain_of(slopes[those], curves[those], right[those])
                        for those in (own & (leaf == one) for one in np.unique(leaf))
                    )
                    if gain > best[0] + 1e-12:
                        best = gain, feature, cut
            questions.append(best[1:])
            leaf = 2 * leaf + (bins[:, best[1]] > best[2])
        values = [
            -rate * slopes[those].sum() / (curves[those].sum() + 1)
            for those in (own & (leaf == one) for one in range(2**depth))
        ]
        margins = margins + np.array(values)[leaf]
        trees.append((questions, values))
    return trees


def gain_of(slopes, curves, right):
    if min(curves[right].sum(), curves[~right].sum()) < 2:
        return 0.0
    sides = [slopes[side].sum() ** 2 / (curves[side].sum() + 1) for side in (right, ~right)]
    return sum(sides) - slopes.sum() ** 2 / (curves.sum() + 1)


@pytest.mark.parametrize("stride", [1, 3])
def test_trees_are_those_of_newton_boosting(stride):
    random = np.random.default_rng(0)
    bins = random.integers(0, 8, (300, 3)).astype(np.uint8)
    targets = (bins[:, 0] + bins[:, 1] + random.normal(size=300) > 8).astype(float)
    features, cuts, values = boost(bins, targets, 8, 5, 2, 0.3, np.full(300, -0.5), stride)
    expected = boosted(bins, targets, 8, 5, 2, 0.3, -0.5, stride)
    for tree, (questions, leaves) in enumerate(expected):
        assert list(zip(features[tree].tolist(), cuts[tree].tolist(), strict=True)) == questions
        np.testing.assert_allclose(values[tree], leaves, rtol=1e-9)


def test_probabilities_are_as_frequent_as_they_say():
    random = np.random.default_rng(1)
    rows = random.normal(size=(20_000, 3)).astype(np.float32)
    truth = expit(2 * rows[:, 0] * (rows[:, 1] > 0) - 1)
    relevant = random.random(len(rows)) < truth
    trees = BoostedTrees.fitted(rows[:10_000], relevant[:10_000])
    found = expit(trees.log_odds(rows[10_000:]))
    assert np.abs(found - truth[10_000:]).mean() < 0.05
    for low in (0.0, 0.3, 0.6):
        near = (found >= low) & (found < low + 0.3)
        assert abs(found[near].mean() - relevant[10_000:][near].mean()) < 0.04


@pytest.mark.parametrize("share", [0, 1])
def test_one_kind_of_candidates_and_constant_evidence_are_no_problem(share):
    rows = np.zeros((50, 2), np.float32)
    chances = expit(BoostedTrees.fitted(rows, np.full(50, bool(share))).log_odds(rows))
    assert np.isfinite(chances).all()
    assert np.abs(chances - share).max() < 0.05
