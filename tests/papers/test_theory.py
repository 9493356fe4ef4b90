"""If these fail, what the pages say about the paper's theory rests on wrong formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import umpteen as um
from papers.eagle import theorems, theory

seeds = st.integers(0, 2**32 - 1)


def drawn(seed, n=40, d=3, outputs=2):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal((n, outputs))


def literal_lr(pairs):
    """`LR` below Equation 3, as printed."""
    second = sum(np.outer(x, x) for x, _ in pairs)
    mixed = sum(np.outer(x, z) for x, z in pairs)
    return np.linalg.inv(second) @ mixed


def literal_no_assignment(X, Z, groups):
    return literal_lr([(sum(X[i] for i in group), sum(Z[i] for i in group)) for group in groups])


def literal_with_assignment(X, Z, groups):
    start = literal_no_assignment(X, Z, groups)
    pairs = []
    for group in groups:
        for i in group:
            nearest = min(group, key=lambda r, i=i: np.linalg.norm(Z[i] - start.T @ X[r]))
            pairs.append((X[nearest], Z[i]))
    return literal_lr(pairs)


def random_groups(seed, n=40):
    """Groups of all sizes, some samples in two; every sample in one."""
    rng = np.random.default_rng(seed)
    groups = [g.tolist() for g in np.split(rng.permutation(n), np.sort(rng.choice(n, 12, False)))]
    groups = [group for group in groups if group]
    return [*groups, rng.choice(n, 5, replace=False).tolist()]


@given(seeds)
def test_estimators_are_those_of_the_paper(seed):
    X, Z = drawn(seed)
    groups = random_groups(seed)
    for fast, literal in (
        (theory.no_assignment, literal_no_assignment),
        (theory.with_assignment, literal_with_assignment),
    ):
        np.testing.assert_allclose(fast(X, Z, groups), literal(X, Z, groups), rtol=1e-6, atol=1e-8)


@given(seeds)
def test_groups_of_one_are_the_oracle(seed):
    X, Z = drawn(seed)
    groups = um.data.group_randomly(len(X), 1, seed)
    oracle = theory.least_squares(X, Z)
    np.testing.assert_allclose(theory.no_assignment(X, Z, groups), oracle, atol=1e-9)
    np.testing.assert_allclose(theory.with_assignment(X, Z, groups), oracle, atol=1e-9)


@given(seeds)
def test_the_order_of_outputs_within_a_group_does_not_matter(seed):
    X, Z = drawn(seed)
    groups = um.data.group_randomly(len(X), 4, seed)
    shuffled = Z.copy()
    for j in range(groups.shape[0]):
        inside = groups[j].indices
        shuffled[inside] = Z[np.random.default_rng(seed).permutation(inside)]
    for estimate in (theory.no_assignment, theory.with_assignment):
        np.testing.assert_allclose(estimate(X, Z, groups), estimate(X, shuffled, groups), atol=1e-8)


def test_without_noise_assignment_is_exact():
    X, _ = drawn(0)
    true = np.random.default_rng(1).standard_normal((3, 2))
    groups = um.data.group_randomly(len(X), 5, 0)
    np.testing.assert_allclose(theory.with_assignment(X, X @ true, groups), true, atol=1e-9)
    chosen = theory.assigned(X, X @ true, groups, true)
    assert np.array_equal(chosen, groups.indices)


def test_theorem_1_has_its_two_ends():
    assert theory.theorem1_rate(10, between=1, within=0) == 1
    assert theory.theorem1_rate(10, between=1, within=1e6) == pytest.approx(math.sqrt(10))


def test_overlap_is_that_of_definition_2():
    occurs = np.random.default_rng(0).random((30, 6)) < 0.4
    sets = [set(np.flatnonzero(column)) for column in occurs.T]
    literal = max(
        len(sets[a] & sets[b]) / min(len(sets[a]), len(sets[b])) for a in range(6) for b in range(a)
    )
    assert theory.overlap(csr_matrix(3 * occurs)) == pytest.approx(literal)
    assert theory.overlap([[1, 0, 0], [0, 1, 0]]) == 0  # the third label is in no group


@given(st.floats(0, 0.5), st.floats(0.05, 2), st.floats(0, 1))
def test_theorem_3_gets_weaker_with_noise_overlap_and_nearness(f, delta, q):
    bound = theory.theorem3_bound(f, delta, q)
    assert -1 <= bound <= 1
    assert theory.theorem3_bound(f + 0.01, delta, q) <= bound
    assert theory.theorem3_bound(f, delta / 2, q) <= bound
    assert theory.theorem3_bound(f, delta, min(1, q + 0.01)) <= bound


def test_theorem_3_says_nothing_about_the_toy():
    """Figure 1: both labels are in every group."""
    assert theory.theorem3_bound(0.0, delta=2.0, q=theory.overlap(np.ones((3, 2)))) == -1


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05, 0.1])
def test_theorem_3_holds_where_it_says_something(noise):
    for seed in range(25):
        bound, found = theorems.simulate(noise, np.random.default_rng(seed))
        assert bound > 0.5
        assert found >= bound - 1e-9


def test_best_embedding_is_the_best_of_very_many():
    rng = np.random.default_rng(0)
    angles = np.linspace(0, 2 * np.pi, 10_000)
    tried = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for _ in range(20):
        groups = rng.standard_normal((8, 3, 2))
        groups /= np.linalg.norm(groups, axis=2, keepdims=True)
        fits = sum((tried @ samples.T).max(axis=1) for samples in groups)
        ours = sum((samples @ theorems.best_embedding(groups)).max() for samples in groups)
        assert ours >= fits.max() - 1e-3


@given(st.floats(-1, 0.999), st.floats(0.05, 1), st.floats(0, 1))
def test_theorem_4s_condition_is_that_its_bound_improves(cosine, alpha, f):
    gain = theory.theorem4_bound(cosine, alpha, f) - cosine
    if abs(gain) > 1e-9:
        assert theory.theorem4_holds(cosine, alpha, f) == (gain > 0)
    limit = theory.theorem4_limit(alpha, f)
    if abs(cosine - limit) > 1e-9:
        assert theory.theorem4_holds(cosine, alpha, f) == (cosine < limit)


def test_the_printed_condition_gets_easier_with_noise_and_the_exact_one_harder():
    noises = np.linspace(0, 0.3, 7)
    exact = [theory.theorem4_limit(0.8, f) for f in noises]
    printed = [theory.theorem4_limit_printed(0.8, f) for f in noises]
    assert exact == sorted(exact, reverse=True)
    assert printed == sorted(printed)
    assert exact[0] == pytest.approx(printed[0])


@given(seeds, st.floats(0, 0.3))
def test_theorem_4_holds_for_steps_to_the_mean(seed, noise):
    """A step from a random direction keeps the bound, whatever share of groups is right."""
    rng = np.random.default_rng(seed)
    true = np.array([1.0, 0.0, 0.0])
    own = _units(true + noise * rng.standard_normal((30, 3)))
    others = _units(rng.standard_normal((30, 2, 3)))
    groups = np.concatenate([own[:, np.newaxis], others], axis=1)  # (groups, samples, features)
    now = _units(true + rng.standard_normal(3))
    chosen = (groups @ now).argmax(axis=1)
    step = _units(groups[np.arange(30), chosen].sum(axis=0))
    f = np.linalg.norm(own - true, axis=1).max()
    assert step @ true >= theory.theorem4_bound(now @ true, (chosen == 0).mean(), f) - 1e-9


def _units(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
