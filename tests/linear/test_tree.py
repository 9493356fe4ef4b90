"""If weights are filed under the wrong child or feature, predictions are wrong without a sign."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umpteen.kernels.beam import _add_chunk
from umpteen.kernels.simd import WIDTH
from umpteen.kernels.topk import frozen_csr
from umpteen.linear.chunks import MAX_CHUNK, plan_chunks

from .random_trees import (
    assemble,
    chunk_of,
    dense_weights,
    random_chunks,
    random_csr,
    random_hierarchy,
    random_tree,
)


@given(st.lists(st.integers(1, 700), min_size=1, max_size=12))
def test_chunks_cover_all_children_and_stay_within_their_node(sizes):
    first_child = np.cumsum([1, *sizes]).astype(np.int32)
    plan = plan_chunks(first_child)
    assert plan.chunk_child[0] == 1
    assert plan.chunk_child[-1] == first_child[-1]
    assert len(plan.chunk_node) == len(plan.chunk_child) - 1 == plan.node_chunk[-1]
    widths = np.diff(plan.chunk_child)
    assert widths.min() > 0
    assert widths.max() <= MAX_CHUNK
    for node, (begin, end) in enumerate(pairwise(plan.node_chunk)):
        assert (plan.chunk_node[begin:end] == node).all()
        assert plan.chunk_child[begin] == first_child[node]
        assert plan.chunk_child[end] == first_child[node + 1]
        assert (widths[begin : end - 1] % WIDTH == 0).all(), "only the last has lanes to spare"
    assert all(part.dtype == np.int32 for part in plan)


@pytest.mark.parametrize(("size", "widths"), [(1, [1]), (128, [128]), (129, [80, 49])])
def test_a_node_is_cut_evenly(size, widths):
    plan = plan_chunks(np.array([1, 1 + size], np.int32))
    assert np.diff(plan.chunk_child).tolist() == widths


SHAPES = [(1, 2, 3), (7, 2, 2), (30, 3, 4), (60, 300, 1), (400, 2, 200)]


@pytest.mark.parametrize(("n_labels", "branching", "max_leaf"), SHAPES)
def test_a_tree_holds_the_weights_of_its_chunks_to_16_bits(n_labels, branching, max_leaf):
    n_features = 17
    hierarchy = random_hierarchy(n_labels, branching, max_leaf)
    chunks = random_chunks(hierarchy, n_features, 0.2)
    tree = assemble(hierarchy, chunks, n_features)
    expected = []
    for chunk in chunks:
        table = np.zeros((len(chunk.bias), n_features), np.float32)
        table[chunk.child, np.repeat(chunk.feature, np.diff(chunk.entry))] = chunk.weight
        expected.append(table)
    expected = np.concatenate(expected)
    held = dense_weights(tree, n_features)
    np.testing.assert_allclose(held, expected, rtol=0, atol=np.abs(expected).max() / 65_000)
    np.testing.assert_array_equal(held != 0, expected != 0)
    np.testing.assert_array_equal(tree.bias, np.concatenate([chunk.bias for chunk in chunks]))
    assert len(tree.weight) == sum(len(chunk.weight) for chunk in chunks)
    assert len(tree.log_trust) == n_labels
    assert not tree.log_trust.any()


@pytest.mark.parametrize(("n_labels", "branching", "max_leaf"), SHAPES)
def test_a_single_classifier_is_its_row_of_the_tree(n_labels, branching, max_leaf):
    """Explanations and keywords are read from here."""
    tree = random_tree(random_hierarchy(n_labels, branching, max_leaf), 17)
    for number, expected in enumerate(dense_weights(tree, 17), start=1):
        features, weights = tree.classifier(number)
        np.testing.assert_array_equal(features, np.flatnonzero(expected))
        np.testing.assert_array_equal(weights, expected[features])


def check_products(tree, X):
    """Every chunk's margins of every row against the dense product."""
    indptr, indices, data = frozen_csr(X)
    expected = X.toarray().astype(np.float64) @ dense_weights(tree, X.shape[1]).T
    for chunk, (first, last) in enumerate(pairwise(tree.chunk_child)):
        for row in range(X.shape[0]):
            margins = np.ones(last - first, np.float32)
            here = slice(indptr[row], indptr[row + 1])
            _add_chunk(indices[here], data[here], tree.arrays, np.int32(chunk), margins)
            wanted = 1 + expected[row, first - 1 : last - 1]
            np.testing.assert_allclose(margins, wanted, rtol=1e-5, atol=1e-4)


@settings(max_examples=40)
@given(
    n_features=st.one_of(st.integers(1, 40), st.sampled_from([63, 64, 65, 1000])),
    density=st.sampled_from([0.0, 0.01, 0.3, 1.0]),
    seed=st.integers(0, 1000),
)
def test_the_index_finds_every_stored_feature_and_no_other(n_features, density, seed):
    tree = random_tree(random_hierarchy(9, 3, 2, seed=seed), n_features, density, seed=seed)
    check_products(tree, random_csr(3, n_features, 0.7, seed=seed))


@settings(max_examples=60)
@given(st.integers(1, 300), st.data())
def test_the_index_finds_features_wherever_they_stand(n_features, data):
    """Few features, anywhere: alone at either end, or crowded into one bucket."""
    stored = data.draw(st.sets(st.integers(0, n_features - 1), max_size=6))
    stored |= data.draw(st.sampled_from([set(), {0}, {n_features - 1}, {0, n_features - 1}]))
    table = np.zeros((n_features, 2), np.float32)
    table[sorted(stored)] = 1 + np.arange(2 * len(stored)).reshape(-1, 2)
    chunk = chunk_of(table, np.zeros(2, np.float32))
    tree = assemble(random_hierarchy(2, 2, 5), [chunk], n_features)
    check_products(tree, random_csr(1, n_features, 1.0, values=(1.0,)))
    check_products(tree, random_csr(1, n_features, 0.5, values=(1.0,)))


def test_widths_are_those_of_the_root_and_of_the_widest_node_below():
    assert random_tree(random_hierarchy(30, 6, 5), 4).widths == (6, 5)
    assert random_tree(random_hierarchy(3, 6, 5), 4).widths == (3, 1)
