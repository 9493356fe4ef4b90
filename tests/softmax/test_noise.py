"""What negatives are drawn from: probabilities that add up, draws that follow them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import chisquare

from umpteen.kernels.noise import alias_table
from umpteen.softmax import NoiseTree
from umpteen.softmax.noise import Noise


def one_label_each(y, n_classes):
    return csr_matrix((np.ones(len(y)), y, np.arange(len(y) + 1)), shape=(len(y), n_classes))


def tree_noise(n_classes, share, dim=3, seed=0):
    """Noise of a tree over random data, the rows it was fitted to, and their labels."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(4 * n_classes, 5)).astype(np.float32)
    Y = one_label_each(random.integers(0, n_classes, len(X)), n_classes)
    tree = NoiseTree(dim=dim, regularizer=0.3, n_jobs=1, verbose=False)
    return Noise.of_tree(tree, X, Y, share), X, Y


def noises(n_classes=7):
    _, _, Y = tree_noise(n_classes, 0.3)
    return {
        "tree": tree_noise(n_classes, 0.0)[0],
        "mixed": tree_noise(n_classes, 0.3)[0],
        "frequency": Noise.by_frequency(Y),
        "uniform": Noise.uniform(n_classes),
    }


def every_label(n_rows, n_classes):
    return np.tile(np.arange(n_classes, dtype=np.int32), (n_rows, 1))


@given(n_classes=st.integers(1, 40), share=st.sampled_from([0.0, 0.01, 0.3, 0.99]))
@settings(max_examples=20)
def test_probabilities_of_all_classes_add_up_to_1(n_classes, share):
    noise, X, _ = tree_noise(n_classes, share)
    reduced = noise.reduce(X)
    pairs = noise.log_prob(reduced, every_label(len(X), n_classes))
    np.testing.assert_allclose(np.exp(pairs.astype(float)).sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(noise.log_prob_table(reduced), pairs, atol=2e-5)


def test_the_mixture_is_what_its_name_says():
    noise, X, Y = tree_noise(9, 0.3)
    counts = np.bincount(Y.indices, minlength=9) + 1
    tree = np.exp(noise.tree.log_prob(X, every_label(len(X), 9)))
    expected = 0.7 * tree + 0.3 * counts / counts.sum()
    np.testing.assert_allclose(np.exp(noise.log_prob_table(noise.reduce(X))), expected, rtol=1e-4)


@pytest.mark.parametrize("kind", ["frequency", "uniform"])
def test_without_a_tree_every_row_has_the_same_probabilities(kind):
    noise = noises()[kind]
    reduced = noise.reduce(np.ones((3, 5), np.float32))
    table = np.broadcast_to(noise.log_prob_table(reduced), (3, 7))
    np.testing.assert_array_equal(table, noise.log_prob(reduced, every_label(3, 7)))
    np.testing.assert_allclose(np.exp(table).sum(axis=1), 1, rtol=1e-6)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=60))
def test_the_alias_table_draws_exactly_by_frequency(weights):
    frequencies = np.array(weights) / np.sum(weights)
    limit, alias = alias_table(frequencies)
    drawn = limit.copy()
    np.add.at(drawn, alias, 1 - limit)
    assert (limit >= 0).all()
    assert (limit <= 1).all()
    np.testing.assert_allclose(drawn / len(drawn), frequencies, atol=1e-14 * len(drawn))


@pytest.mark.parametrize("kind", ["tree", "mixed", "frequency", "uniform"])
def test_draws_follow_the_probabilities_that_come_with_them(kind):
    noise, n_classes, n_draws = noises()[kind], 7, 20_000
    X = tree_noise(n_classes, 0.3)[1][:3]
    Y, reduced = one_label_each([0, 1, 2], n_classes), noise.reduce(X)
    rows = np.arange(3, dtype=np.int32)
    (visits,) = noise.visits(reduced, Y, [rows], n_draws, seed=5, n_jobs=1)
    labels, logs = visits
    np.testing.assert_array_equal(labels[:, 0], [0, 1, 2])
    np.testing.assert_allclose(logs, noise.log_prob(reduced, labels), atol=1e-4)
    for row in range(3):
        expected = np.exp(noise.log_prob(reduced, every_label(3, n_classes))[row].astype(float))
        found = np.bincount(labels[row, 1:], minlength=n_classes)
        assert chisquare(found, n_draws * expected / expected.sum()).pvalue > 1e-3


def test_a_visit_draws_one_of_the_samples_own_labels_each_as_often():
    noise = Noise.uniform(6)
    Y = csr_matrix(np.array([[1, 0, 1, 0, 1, 0]] * 6_000))
    rows = np.arange(6_000, dtype=np.int32)
    ((labels, _),) = noise.visits(np.zeros((6_000, 1), np.float32), Y, [rows], 1, 0, 1)
    found = np.bincount(labels[:, 0], minlength=6)
    assert found[[1, 3, 5]].sum() == 0
    assert chisquare(found[[0, 2, 4]]).pvalue > 1e-3


def test_what_a_row_draws_does_not_depend_on_the_chunks():
    """Else another chunk size or number of threads would give another model."""
    noise, X, Y = tree_noise(9, 0.3)
    reduced, rows = noise.reduce(X), np.arange(len(X), dtype=np.int32)
    (whole,) = noise.visits(reduced, Y, [rows], 4, seed=1, n_jobs=1)
    halves = list(noise.visits(reduced, Y, [rows[:10], rows[10:]], 4, seed=1, n_jobs=2))
    for part, parts in zip(whole, zip(*halves, strict=True), strict=True):
        np.testing.assert_array_equal(part, np.concatenate(parts))
    (other,) = noise.visits(reduced, Y, [rows], 4, seed=2, n_jobs=1)
    assert (other[0] != whole[0]).any()


def test_the_sum_over_classes_is_estimated_without_bias():
    """By importance: the mean over many seeds of exp(s - log p) / n."""
    noise, X, Y = tree_noise(9, 0.2)
    reduced, rows = noise.reduce(X), np.arange(4, dtype=np.int32)
    scores = np.random.default_rng(1).normal(0, 1.5, (4, 9))
    sums = []
    for seed in range(3_000):
        ((labels, logs),) = noise.visits(reduced, Y, [rows], 5, seed, 1)
        drawn = np.take_along_axis(scores, labels[:, 1:].astype(int), axis=1)
        sums.append(np.exp(drawn - logs[:, 1:]).mean(axis=1))
    error = np.mean(sums, axis=0) - np.exp(scores).sum(axis=1)
    assert (np.abs(error) < 4 * np.std(sums, axis=0) / np.sqrt(len(sums))).all()
