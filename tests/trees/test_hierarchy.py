"""If the tree is uneven, some labels are slow to reach; a missing one is never predicted."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from umpteen.trees import Hierarchy, grow
from umpteen.trees.hierarchy import layer_sizes


def label_rows(n_labels, n_empty=0, n_features=30, seed=0):
    """Unit rows, and some all-zero ones at random places among them."""
    random = np.random.default_rng(seed)
    table = random.random((n_labels, n_features)) * (random.random((n_labels, n_features)) < 0.2)
    table[np.arange(n_labels), random.integers(n_features, size=n_labels)] += 0.5
    table = np.vstack([table, np.zeros((n_empty, n_features))])
    return csr_matrix(normalize(table[random.permutation(len(table))]).astype(np.float32))


def depth(tree, number):
    parents = tree.parents()
    steps = 0
    while number > 0:
        number, steps = parents[number], steps + 1
    return steps


@settings(max_examples=80)
@given(
    n_labels=st.integers(1, 150),
    n_empty=st.integers(0, 10),
    branching=st.integers(2, 20),
    max_leaf=st.integers(1, 25),
    seed=st.integers(0, 2**31 - 1),
)
def test_every_label_stands_once_in_a_balanced_tree(n_labels, n_empty, branching, max_leaf, seed):
    rows = label_rows(n_labels, n_empty, seed=seed)
    tree = grow(rows, branching=branching, max_leaf=max_leaf, seed=seed, n_jobs=1)

    with_features = np.flatnonzero(np.diff(rows.indptr))
    assert sorted(tree.label_order) == with_features.tolist(), "zero rows are left out, no others"

    sizes = np.diff(tree.first_child)
    *inner, leaves = tree.layers()
    assert sizes[leaves].max() <= max_leaf
    assert sizes[leaves].max() - sizes[leaves].min() <= 1
    assert all(1 <= sizes[node] <= branching for layer in inner for node in layer)
    assert [len(layer) for layer in tree.layers()] == layer_sizes(n_labels, branching, max_leaf)


@settings(max_examples=30)
@given(st.integers(1, 80), st.integers(2, 8), st.integers(1, 10))
def test_parents_children_layers_and_paths_tell_the_same_story(n_labels, branching, max_leaf):
    tree = grow(label_rows(n_labels, n_empty=2), branching=branching, max_leaf=max_leaf, n_jobs=1)
    parents, n_numbers = tree.parents(), tree.n_nodes + n_labels
    assert parents[0] == -1
    assert len(parents) == n_numbers
    children = [range(first, last) for first, last in pairwise(tree.first_child)]
    assert [number for below in children for number in below] == list(range(1, n_numbers))
    assert all(parents[child] == node for node, below in enumerate(children) for child in below)

    layers = tree.layers()
    assert [node for layer in layers for node in layer] == list(range(tree.n_nodes))
    assert all(depth(tree, node) == d for d, layer in enumerate(layers) for node in layer)

    for place, label in enumerate(tree.label_order):
        path = tree.path(label)
        assert path[-1] == tree.n_nodes + place
        assert len(path) == len(layers), "all labels are equally deep"
        assert [parents[number] for number in path] == [0, *path[:-1]]


@settings(max_examples=20)
@given(st.integers(1, 60), st.integers(2, 6), st.integers(1, 6))
def test_labels_below_a_node_are_those_whose_path_leads_through_it(n_labels, branching, max_leaf):
    tree = grow(label_rows(n_labels), branching=branching, max_leaf=max_leaf, n_jobs=1)
    paths = {label: [0, *tree.path(label)] for label in tree.label_order.tolist()}
    for number in range(tree.n_nodes + n_labels):
        expected = [label for label, path in paths.items() if number in path]
        assert tree.labels_below(number).tolist() == expected
    for above, layer in pairwise(tree.layers()):
        assert tree.n_children(above) == len(layer)
    assert tree.n_children(tree.layers()[-1]) == n_labels


@settings(max_examples=30)
@given(st.integers(1, 40), st.integers(0, 20), st.integers(2, 6), st.integers(1, 6))
def test_named_labels_all_have_a_place_even_without_features(n, n_empty, branching, max_leaf):
    """Labels whose samples are all empty can still be predicted."""
    rows = label_rows(n, n_empty)
    labels = np.arange(0, n + n_empty, 2, dtype=np.int32)
    tree = grow(rows, labels=labels, branching=branching, max_leaf=max_leaf, n_jobs=1)
    assert sorted(tree.label_order) == labels.tolist()
    sizes = np.diff(tree.first_child)[tree.layers()[-1]]
    assert sizes.max() - sizes.min() <= 1
    assert labels.tolist() == list(range(0, n + n_empty, 2)), "the argument is left as it was"


def test_a_label_without_a_place_has_an_empty_path():
    rows = label_rows(12, n_empty=3)
    tree = grow(rows, branching=2, max_leaf=2, n_jobs=1)
    for label in np.flatnonzero(np.diff(rows.indptr) == 0):
        assert tree.path(label) == []


@pytest.mark.parametrize("n_labels", [1, 2, 7])
def test_few_labels_need_no_tree(n_labels):
    tree = grow(label_rows(n_labels), branching=16, max_leaf=7, n_jobs=1)
    assert tree.first_child.tolist() == [1, 1 + n_labels]
    assert [tree.path(label) for label in tree.label_order] == [[1 + i] for i in range(n_labels)]


@pytest.mark.parametrize("n_rows", [0, 5])
def test_without_a_single_label_there_is_a_root_and_nothing_else(n_rows):
    tree = grow(csr_matrix((n_rows, 4), dtype=np.float32), n_jobs=1)
    assert tree.first_child.tolist() == [1, 1]
    assert len(tree.label_order) == 0
    assert tree.layers() == [range(1)]
    assert tree.parents().tolist() == [-1]
    assert tree.path(0) == []


@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_do_not_change_the_tree(n_jobs):
    rows = label_rows(400, seed=3)
    alone, together = (grow(rows, branching=4, max_leaf=5, n_jobs=n) for n in (1, n_jobs))
    assert alone.label_order.tobytes() == together.label_order.tobytes()
    assert alone.first_child.tobytes() == together.first_child.tobytes()


def test_trees_of_an_ensemble_differ_and_a_seed_repeats_its_tree():
    rows = label_rows(200)
    orders = [
        grow(rows, branching=4, max_leaf=5, seed=s, n_jobs=1).label_order for s in (0, 0, 1, 2)
    ]
    assert orders[0].tobytes() == orders[1].tobytes()
    assert len({order.tobytes() for order in orders}) == 3


def test_labels_of_a_kind_share_a_leaf():
    """Eight kinds of four labels each, in random order: by chance a leaf would be half as pure."""
    purities = []
    for seed in range(10):
        random = np.random.default_rng(seed)
        kinds = random.permutation(np.repeat(np.arange(8), 4))
        table = normalize(np.eye(8)[kinds] + 0.02 * random.random((32, 8)))
        rows = csr_matrix(table, dtype=np.float32)
        tree = grow(rows, branching=8, max_leaf=4, seed=seed, n_jobs=1)
        leaves = kinds[tree.label_order].reshape(8, 4)
        purities += [np.bincount(leaf).max() / 4 for leaf in leaves]
    assert np.mean(purities) > 0.85


def test_growing_leaves_the_rows_as_they_were():
    rows = label_rows(50)
    before = rows.copy()
    grow(rows, branching=3, max_leaf=3, n_jobs=2)
    assert (rows != before).nnz == 0


def test_a_tree_by_hand():
    """Root 0; nodes 1 and 2; labels 3 and 0 in the one, 7 in the other."""
    tree = Hierarchy(np.array([1, 3, 5, 6], np.int32), np.array([3, 0, 7], np.int32))
    assert tree.n_nodes == 3
    assert tree.layers() == [range(1), range(1, 3)]
    assert tree.parents().tolist() == [-1, 0, 0, 1, 1, 2]
    assert [tree.path(label) for label in (3, 0, 7, 5)] == [[1, 3], [1, 4], [2, 5], []]


@given(st.integers(1, 10**7), st.integers(2, 1000), st.integers(1, 1000))
def test_layers_widen_by_no_more_than_the_branching(n_labels, branching, max_leaf):
    sizes = layer_sizes(n_labels, branching, max_leaf)
    assert sizes[0] == 1
    assert sizes[-1] == -(-n_labels // max_leaf)
    assert all(above < below <= above * branching for above, below in pairwise(sizes))


@given(st.integers(1, 10**7), st.integers(256, 1000), st.integers(1, 200))
def test_wide_trees_have_sixteen_children_above_the_leaves(n_labels, branching, max_leaf):
    """Two children take as long to train as sixteen, which trees of 50,000 labels paid for."""
    *above, nodes, leaves = [1, *layer_sizes(n_labels, branching, max_leaf)]
    if len(above) > 1:
        assert nodes == min(above[-1] * branching, -(-leaves // 16))


def test_trees_of_published_shapes_are_as_wide_as_allowed():
    assert layer_sizes(30_000, branching=16, max_leaf=100) == [1, 16, 256, 300]
    assert layer_sizes(30_000, branching=100, max_leaf=100) == [1, 100, 300]
