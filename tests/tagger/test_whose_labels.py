"""Confidences of a group's labels are posteriors: wrong ones mislead whoever trusts them."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from umpteen.tagger.whose_labels import Claims


def literal(p, is_possible):
    """Inclusion probabilities by enumeration of all outcomes that are possible."""
    total, found = 0.0, np.zeros(len(p))
    for outcome in product([0, 1], repeat=len(p)):
        if is_possible(sum(outcome)):
            weight = np.prod(np.where(outcome, p, 1 - p))
            total += weight
            found += weight * np.array(outcome)
    return found / total


@pytest.mark.parametrize("seed", range(8))
def test_shares_are_posteriors_given_the_groups_labels(seed):
    rng = np.random.default_rng(seed)
    counts = csr_matrix([[1, 0, 2], [0, 3, 1]]).astype(np.float32)
    group, label, p = [], [], []
    for j, k in zip(*counts.nonzero(), strict=True):
        group += [j] * 5
        label += [k] * 5
        p.append(rng.uniform(0.02, 0.98, 5))
    order = rng.permutation(len(group))  # claims come in any order
    p = np.concatenate(p)
    for exact in (False, True):
        claims = Claims.of(np.array(group)[order], np.array(label)[order], counts, exact)
        shares = np.empty(len(p))
        shares[order] = claims.shares(p[order])
        for i, count in enumerate(counts.data):
            own = slice(5 * i, 5 * i + 5)
            is_possible = (lambda n, c=count: n == c) if exact else (lambda n: n > 0)
            np.testing.assert_allclose(shares[own], literal(p[own], is_possible), rtol=1e-6)


def test_somebody_has_the_label_by_noisy_or():
    claims = Claims.of(np.zeros(2, int), np.zeros(2, int), csr_matrix([[1.0]]), exact=False)
    assert claims.occurs(np.array([0.5, 0.2])) == pytest.approx([0.6])


def test_a_label_that_the_group_does_not_have_is_nobodys():
    counts = csr_matrix([[0, 1.0], [1.0, 0]])
    claims = Claims.of(np.array([0, 0, 1]), np.array([0, -1, 0]), counts, exact=False)
    assert claims.pair.tolist() == [-1, -1, 1]
    assert claims.shares(np.array([0.9, 0.9, 0.9])).tolist() == pytest.approx([0, 0, 1])


@pytest.mark.parametrize("p", [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
@pytest.mark.parametrize("exact", [False, True])
def test_certainty_gives_numbers(p, exact):
    claims = Claims.of(np.zeros(2, int), np.zeros(2, int), csr_matrix([[1.0]]), exact)
    shares = claims.shares(np.array(p))
    assert np.isfinite(shares).all()
    assert shares.sum() >= 1 - 1e-6


def test_more_than_there_are_is_all():
    claims = Claims.of(np.zeros(2, int), np.zeros(2, int), csr_matrix([[3.0]]), exact=True)
    assert claims.shares(np.array([0.3, 0.1])).tolist() == [1, 1]


def by_convolution(p, count):
    """Inclusion probabilities from the distribution of the number of the other texts."""
    found = np.empty(len(p))
    for i in range(len(p)):
        others = np.ones(1)
        for each in np.delete(p, i):
            others = np.convolve(others, [1 - each, each])
        with_it, without = p[i] * others[count - 1], (1 - p[i]) * others[count]
        found[i] = with_it / (with_it + without)
    return found


@pytest.mark.parametrize(
    ("count", "tolerance"), [(1, 1e-9), (16, 1e-6), (17, 0.01), (50, 0.01), (84, 1e-6), (99, 1e-9)]
)
def test_large_counts_have_the_right_shares(count, tolerance):
    """The recursion by itself was wrong by 0.9 for 50 of 100 texts."""
    p = np.random.default_rng(count).uniform(0.01, 0.9, 100)
    shares = Claims(np.zeros(100, np.int64), np.array([float(count)]), exact=True).shares(p)
    np.testing.assert_allclose(shares, by_convolution(p, count), atol=tolerance)
    assert shares.sum() == pytest.approx(count, rel=1e-6)


def test_one_large_count_among_many_small_ones():
    n_large, n_small = 2_000, 300_000
    pair = np.r_[np.zeros(n_large, np.int64), 1 + np.arange(n_small) // 3]
    counts = np.r_[n_large / 2, np.ones(n_small // 3)]
    p = np.random.default_rng(0).uniform(0.01, 0.9, len(pair))
    sums = np.bincount(pair, Claims(pair, counts, exact=True).shares(p))
    np.testing.assert_allclose(sums, counts)
