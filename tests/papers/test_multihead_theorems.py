"""If these fail, the page claims bounds that do not hold."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from papers.multihead import theorems


def test_theorem_4_is_false_as_printed():
    p, D = np.array([1 - 1e-4, 1e-4]), np.array([-20.0, 0.0])
    assert theorems.error(p, D) == pytest.approx(2.0, abs=1e-3)
    assert theorems.printed_bound(D) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_what_holds_instead(n_classes):
    p, D = theorems.drawn(20_000, n_classes, seed=1)
    found = theorems.error(p, D)
    assert (found > theorems.printed_bound(D) + 1e-9).any() or n_classes == 10  # rare there
    assert (found <= theorems.shifted_bound(D) + 1e-9).all()
    assert (found <= theorems.sharp_bound(D) + 1e-9).all()
    positive = np.abs(D)
    assert (theorems.error(p, positive) <= theorems.printed_bound(positive) / 2 + 1e-9).all()


def test_the_sharp_bound_is_reached():
    D = np.array([3.0, 0.0])
    p = np.array([np.exp(-1.5), 1.0])
    assert theorems.error(p / p.sum(), D) == pytest.approx(theorems.sharp_bound(D))


def test_errors_are_those_of_a_softmax():
    p, D = theorems.drawn(1, 4, seed=0)
    logits = np.log(p[0])
    literal = np.exp(logits + D[0]) / np.exp(logits + D[0]).sum()
    assert theorems.error(p, D)[0] == pytest.approx(np.abs(literal - p[0]).sum())


@pytest.mark.parametrize("rank", [1, 3])
def test_descent_ends_at_the_best_matrix_of_a_rank(rank):
    random = np.random.default_rng(0)
    features, targets = random.standard_normal((5, 20)), random.standard_normal((6, 20))
    best = theorems.best_of_rank(features, targets, rank)
    for seed in range(4):
        assert theorems.trained(features, targets, rank, seed) == pytest.approx(best, abs=1e-6)
    first = random.standard_normal((6, rank)) @ random.standard_normal((rank, 5))
    assert 0.5 * ((first @ features - targets) ** 2).sum() > best
