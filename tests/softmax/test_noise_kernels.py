"""The fast kernels of the noise tree against the slow and literal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpteen.kernels.noise_beam import beam_topk
from umpteen.kernels.noise_table import log_children, log_prob_table
from umpteen.kernels.noise_tree import NoiseArrays, log_prob_rows


def random_tree(n_classes, dim, seed=0):
    """As `grow` makes them: halves differ by one class, and one class alone goes right."""
    random = np.random.default_rng(seed)
    n_leaves = 1 << (n_classes - 1).bit_length()
    counts = np.array([n_classes])
    while len(counts) < n_leaves:
        counts = np.stack([counts // 2, counts - counts // 2], axis=1).ravel()
    weights = random.normal(0, 2, (n_leaves, dim)).astype(np.float32)
    biases = random.normal(0, 2, n_leaves).astype(np.float32)
    alone = n_leaves // 2 + np.flatnonzero(counts.reshape(-1, 2).sum(axis=1) == 1)
    weights[alone], biases[alone] = 0, np.inf
    label_of = np.full(n_leaves, -1, np.int32)
    label_of[counts > 0] = random.permutation(n_classes)
    leaf_of = np.empty(n_classes, np.int32)
    leaf_of[label_of[counts > 0]] = np.flatnonzero(counts)
    return NoiseArrays(weights, biases, label_of, leaf_of)


def literal_table(tree, samples):
    every = np.arange(len(tree.leaf_of), dtype=np.int32)
    return log_prob_rows(tree, samples, np.tile(every, (len(samples), 1)))


@pytest.mark.parametrize(
    ("n_classes", "dim", "n_rows"), [(2, 1, 1), (3, 4, 2), (700, 5, 40), (5000, 16, 17)]
)
def test_the_table_is_the_log_probability_of_each_class(n_classes, dim, n_rows):
    """Across tiles and groups of rows; 10 is far out for whitened features."""
    tree = random_tree(n_classes, dim)
    samples = np.random.default_rng(1).normal(0, 2, (n_rows, dim)).astype(np.float32)
    samples[0] = 10
    table = log_prob_table(tree, samples)
    np.testing.assert_allclose(table, literal_table(tree, samples), atol=1e-5, rtol=1e-6)
    for row in range(n_rows):
        np.testing.assert_array_equal(log_prob_table(tree, samples[row : row + 1])[0], table[row])


def test_logarithms_of_sides_are_right_from_nothing_to_infinity():
    sizes = np.concatenate([np.linspace(0, 30, 30_001), np.geomspace(1e-30, 1e30, 1000), [np.inf]])
    scores = np.concatenate([sizes, -sizes]).astype(np.float32)
    logs = np.empty(2 * len(scores), np.float32)
    log_children(np.zeros_like(scores), scores, logs)
    exact = scores.astype(np.float64)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(logs[::2], -np.logaddexp(0, exact), atol=2e-7, rtol=2e-7)
        np.testing.assert_allclose(logs[1::2], -np.logaddexp(0, -exact), atol=2e-7, rtol=2e-7)


@settings(max_examples=40)
@given(st.integers(2, 300), st.integers(1, 40), st.integers(1, 40), st.integers(0, 1000))
def test_a_beam_keeps_the_best_nodes_of_every_level(n_classes, width, k, seed):
    tree = random_tree(n_classes, 3, seed)
    sample = np.random.default_rng(seed).normal(0, 1, (1, 3)).astype(np.float32)
    labels, logs = beam_topk(tree, sample, k, width)
    nodes = {1: 0.0}
    for _ in range((n_classes - 1).bit_length()):
        best = sorted(nodes, key=lambda node: (-nodes[node], node))[:width]
        scores = [tree.weights[node] @ sample[0] + tree.biases[node] for node in best]
        nodes = {
            2 * node + side: nodes[node] - np.logaddexp(0, -score if side else score)
            for node, score in zip(best, scores, strict=True)
            for side in (0, 1)
        }
    leaves = {tree.label_of[node - len(tree.label_of)]: log for node, log in nodes.items()}
    expected = sorted((-log, label) for label, log in leaves.items() if label >= 0)[:k]
    n_found = len(expected)
    assert labels[0, :n_found].tolist() == [label for _, label in expected]
    np.testing.assert_allclose(logs[0, :n_found], [-log for log, _ in expected], atol=1e-5)
    assert (labels[0, n_found:] == -1).all()
