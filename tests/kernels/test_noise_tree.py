"""A wrong log-probability biases every prediction of adversarial softmax; a wrong draw, all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from umpteen.kernels.noise_tree import (
    NoiseArrays,
    beam_topk,
    draw_rows,
    log_prob_rows,
    log_prob_table,
    next_random,
    stream_of,
)

DIM = 6  # a block of four, and a rest


def random_tree(n_classes, seed, dim=DIM, scale=1.0):
    """Weights at random, classes at random leaves; left leaves of the last level may be free."""
    random = np.random.default_rng(seed)
    n_leaves = 1 << (n_classes - 1).bit_length()
    weights = scale * random.standard_normal((n_leaves, dim)).astype(np.float32)
    biases = random.standard_normal(n_leaves).astype(np.float32)
    free = 2 * random.choice(max(n_leaves // 2, 1), n_leaves - n_classes, replace=False)
    for leaf in free:
        weights[(n_leaves + leaf) // 2], biases[(n_leaves + leaf) // 2] = 0, np.inf
    label_of = np.full(n_leaves, -1, np.int32)
    taken = np.setdiff1d(np.arange(n_leaves), free)
    label_of[taken] = random.permutation(n_classes)
    leaf_of = np.argsort(label_of, kind="stable")[n_leaves - n_classes :].astype(np.int32)
    return NoiseArrays(weights.astype(np.float32), biases, label_of, leaf_of)


def literal_probabilities(tree, sample):
    """{label: probability}, by walking every way."""
    n_leaves, found = len(tree.label_of), {}

    def walk(node, probability):
        if node >= n_leaves:
            found.setdefault(int(tree.label_of[node - n_leaves]), []).append(probability)
            return
        score = float(tree.biases[node]) + sum(
            float(w) * float(z) for w, z in zip(tree.weights[node], sample, strict=True)
        )
        right = 1 / (1 + np.exp(-score))
        walk(2 * node, probability * (1 - right))
        walk(2 * node + 1, probability * right)

    walk(1, 1.0)
    assert not any(found.pop(-1, [])), "a leaf without class has a probability"
    return {label: probability for label, (probability,) in found.items()}


def samples_of(n, seed, dim=DIM):
    return np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)


@given(st.integers(1, 40), st.integers(0, 1000))
def test_log_probabilities_are_those_of_the_walk(n_classes, seed):
    tree, samples = random_tree(n_classes, seed), samples_of(3, seed)
    table = log_prob_table(tree, samples)
    for row in range(3):
        expected = literal_probabilities(tree, samples[row])
        assert sorted(expected) == list(range(n_classes))
        np.testing.assert_allclose(
            np.exp(table[row]), [expected[label] for label in range(n_classes)], rtol=1e-4
        )
    np.testing.assert_allclose(np.exp(table.astype(np.float64)).sum(axis=1), 1, atol=1e-5)
    labels = np.random.default_rng(seed).integers(n_classes, size=(3, 5)).astype(np.int32)
    given_ones = log_prob_rows(tree, samples, labels)
    np.testing.assert_allclose(
        given_ones, np.take_along_axis(table, labels, axis=1), rtol=1e-5, atol=1e-5
    )


@given(st.integers(1, 40), st.integers(0, 1000), st.integers(1, 12))
def test_a_wide_beam_finds_exactly_the_best(n_classes, seed, k):
    tree, samples = random_tree(n_classes, seed), samples_of(4, seed)
    labels, logs = beam_topk(tree, samples, k, max(1, len(tree.label_of) // 2))
    table = log_prob_table(tree, samples)
    for row in range(4):
        best = np.sort(table[row])[::-1][:k]  # float32 sums along a path, each in its own order
        found = labels[row, : len(best)]
        assert len(set(found.tolist())) == len(best)
        np.testing.assert_allclose(logs[row, : len(best)], best, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(table[row, found], best, rtol=1e-5, atol=1e-5)
    assert (labels[:, n_classes:] == -1).all()
    assert np.isneginf(logs[:, n_classes:]).all()


def test_equal_probabilities_stand_by_label():
    tree = random_tree(11, seed=0)
    tree.weights[:], tree.biases[:] = 0, np.where(np.isinf(tree.biases), np.inf, 0)
    (labels,), (logs,) = beam_topk(tree, samples_of(1, 0), 11, 8)
    lone = np.flatnonzero(logs == logs[0])
    assert labels[lone].tolist() == sorted(labels[lone])
    assert labels[len(lone) :].tolist() == sorted(labels[len(lone) :])


@pytest.mark.parametrize("width", [1, 2, 5])
def test_a_narrow_beam_keeps_the_best_nodes_of_each_level(width):
    tree, samples = random_tree(29, seed=2), samples_of(6, seed=2)
    labels, _ = beam_topk(tree, samples, 3, width)
    for row in range(6):
        nodes = {1: 0.0}
        for _ in range(5):
            below = {}
            for node, log in nodes.items():
                score = tree.biases[node] + tree.weights[node].astype(float) @ samples[row]
                below[2 * node] = log - np.logaddexp(0, score)
                below[2 * node + 1] = log - np.logaddexp(0, -score)
            at_leaves = min(below) >= 32
            kept = sorted(below, key=lambda node: -below[node])[: 3 if at_leaves else width]
            nodes = {node: below[node] for node in kept if np.isfinite(below[node])}
        expected = [tree.label_of[node - 32] for node in nodes]
        assert labels[row, : len(expected)].tolist() == expected


@pytest.mark.parametrize("n_classes", [2, 7, 16])
def test_classes_are_drawn_as_often_as_they_are_probable(n_classes):
    tree, samples = random_tree(n_classes, seed=5), samples_of(3, seed=5)
    labels, logs = draw_rows(tree, samples, 20_000, np.uint64(7), 0)
    table = log_prob_table(tree, samples)
    np.testing.assert_allclose(logs, np.take_along_axis(table, labels, axis=1), atol=1e-5)
    for row in range(3):
        counts = np.bincount(labels[row], minlength=n_classes)
        expected = np.exp(table[row].astype(np.float64))
        expected *= counts.sum() / expected.sum()
        common = expected >= 5
        counts = np.append(counts[common], counts[~common].sum())
        expected = np.append(expected[common], expected[~common].sum())
        used = expected > 0
        assert chisquare(counts[used], expected[used]).pvalue > 1e-3


def test_rows_of_a_batch_draw_independently():
    """Were neighbouring rows' streams alike, a batch would share its negatives."""
    tree = random_tree(64, seed=1, scale=0)
    tree.biases[:] = 0
    labels, _ = draw_rows(tree, samples_of(20_000, 0), 2, np.uint64(3), 0)
    for one, other in ((labels[1:, 0], labels[:-1, 0]), (labels[:, 0], labels[:, 1])):
        pairs = np.bincount(one.astype(np.int64) * 64 + other, minlength=64 * 64)
        assert chisquare(pairs).pvalue > 1e-3


def test_blocks_of_rows_change_no_draw():
    tree, samples = random_tree(20, seed=3), samples_of(50, seed=3)
    labels, logs = draw_rows(tree, samples, 4, np.uint64(11), 0)
    for first, last in ((0, 13), (13, 50)):
        part = draw_rows(tree, samples[first:last], 4, np.uint64(11), first)
        np.testing.assert_array_equal(part[0], labels[first:last])
        np.testing.assert_array_equal(part[1], logs[first:last])


def test_the_generator_is_splitmix64():
    """Its published first values for the seed 1234567."""
    state, found = np.uint64(1234567), []
    for _ in range(3):
        state, uniform = next_random(state)
        found.append(int(uniform * 2**53))
    published = (6457827717110365317, 3203168211198807973, 9817491932198370423)
    assert found == [value >> 11 for value in published]


def test_streams_of_rows_and_seeds_differ():
    states = {int(stream_of(np.uint64(seed), row)) for seed in range(100) for row in range(1000)}
    assert len(states) == 100_000
