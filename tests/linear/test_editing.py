"""If editing a tree moves a weight, labels that nobody touched change their answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from umpteen.linear.chunks import MAX_CHUNK, join, packed, split, unpacked
from umpteen.linear.editing import LabelChunk, flat_tree, with_children, without_labels
from umpteen.linear.search import Search, search_tree, search_trees

from .random_trees import (
    chunk_of,
    dense_weights,
    draw,
    random_csr,
    random_hierarchy,
    random_tree,
)

N_FEATURES = 13
ALL = 10_000  # labels: more than there are

shapes = st.tuples(st.integers(1, 60), st.integers(2, 6), st.integers(1, 20))
seeds = st.integers(0, 1000)


def tree_of(shape, seed=0):
    return random_tree(random_hierarchy(*shape, seed=seed), N_FEATURES, seed=seed)


def classifiers_by_label(tree):
    """For each label: leaf, weights (features), bias and trust, the tree read as a table."""
    weights, first = dense_weights(tree, N_FEATURES), tree.hierarchy.n_nodes
    parents = tree.hierarchy.parents()
    return {
        int(label): (
            int(parents[first + place]),
            weights[first + place - 1].tolist(),
            float(tree.bias[first + place - 1]),
            float(tree.log_trust[place]),
        )
        for place, label in enumerate(tree.hierarchy.label_order)
    }


def classifiers_of_nodes(tree):
    n = tree.hierarchy.n_nodes - 1
    return dense_weights(tree, N_FEATURES)[:n].tolist(), tree.bias[:n].tolist()


def scores_by_label(tree, X):
    """(sample, label) -> the logarithm of the score, with a beam that misses nothing."""
    labels, logs = search_tree(tree, X, ALL, Search(ALL, 0.5, False, 1))
    rows, ranks = np.nonzero(labels >= 0)
    keys = zip(rows.tolist(), labels[rows, ranks].tolist(), strict=True)
    return dict(zip(keys, logs[rows, ranks].tolist(), strict=True))


def assert_same(tree, other):
    for ours, theirs in zip(tree.arrays, other.arrays, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


def assert_sound(tree):
    """What the search relies on."""
    hierarchy, first_child = tree.hierarchy, tree.hierarchy.first_child
    assert first_child[0] == 1
    assert first_child[-1] == hierarchy.n_nodes + len(hierarchy.label_order)
    np.testing.assert_array_equal(tree.chunk_child[tree.node_chunk], first_child)
    assert np.diff(tree.chunk_child).max(initial=0) <= MAX_CHUNK
    assert len(tree.bias) == first_child[-1] - 1
    assert len(tree.log_trust) == len(hierarchy.label_order)
    assert all(
        a.dtype == b.dtype for a, b in zip(tree.arrays, tree_of((5, 2, 2)).arrays, strict=True)
    )


def newcomers(labels, seed=0):
    """A chunk with random weights, and the same as a table (labels, features)."""
    random = np.random.default_rng(seed)
    table = draw(random, None, (N_FEATURES, len(labels))) * (random.random(len(labels)) < 0.8)
    chunk = chunk_of(table, draw(random, None, len(labels)))
    return LabelChunk(np.array(labels, np.int32), chunk), table.T


@given(shapes, seeds)
def test_a_tree_is_the_sum_of_its_chunks(shape, seed):
    tree = tree_of(shape, seed)
    again = join(tree.hierarchy, tree.node_chunk, split(tree))
    assert not again.log_trust.any()
    again.log_trust[:] = tree.log_trust
    assert_same(again, tree)


@given(shapes, seeds)
def test_packing_twice_changes_nothing(shape, seed):
    """Labels that are refitted often would drift otherwise."""
    for chunk in split(tree_of(shape, seed)):
        again = packed(unpacked(chunk), N_FEATURES)
        np.testing.assert_array_equal(again.weight, chunk.weight)
        assert again.scale == pytest.approx(chunk.scale, rel=1e-6)
        np.testing.assert_array_equal(again.buckets, chunk.buckets)


def leaf_of(n, seed=0):
    """A tree that is a single leaf."""
    return tree_of((n, 2, 10_000), seed)


@st.composite
def additions(draw_):
    """A leaf and new ids in parts."""
    n, seed = draw_(st.integers(1, 2 * MAX_CHUNK)), draw_(seeds)
    sizes = draw_(st.lists(st.integers(1, 20), min_size=1, max_size=3))
    ids = iter(draw_(st.permutations(range(n, n + sum(sizes)))))
    return leaf_of(n, seed), [[next(ids) for _ in range(size)] for size in sizes]


@settings(max_examples=50)
@given(additions(), seeds)
def test_added_labels_stand_in_the_leaf_and_the_rest_stays(addition, seed):
    tree, labels = addition
    made = [newcomers(part, seed) for part in labels]
    before = classifiers_by_label(tree)
    grown = flat_tree([new for new, _ in made], N_FEATURES, tree)
    assert_sound(grown)
    after = classifiers_by_label(grown)
    assert {label: after.pop(label) for label in before} == before
    assert classifiers_of_nodes(grown) == classifiers_of_nodes(tree)
    for new, table in made:
        for i, label in enumerate(new.labels.tolist()):
            its_leaf, weights, bias, trust = after.pop(label)
            assert (its_leaf, bias, trust) == (0, new.chunk.bias[i], 0)
            largest = np.abs(table).max()
            # a unit may be four times as large as it would be alone
            np.testing.assert_allclose(weights, table[i], rtol=0, atol=4 * largest / 65_000)
    assert not after


@settings(max_examples=25)
@given(additions(), seeds)
def test_scores_of_old_labels_keep_their_bits(addition, seed):
    tree, labels = addition
    X = random_csr(7, N_FEATURES, 0.5, seed=seed)
    added = [newcomers(part, seed)[0] for part in labels]
    before = scores_by_label(tree, X)
    after = scores_by_label(flat_tree(added, N_FEATURES, tree), X)
    assert {key: after[key] for key in before} == before


def test_a_leaf_takes_more_newcomers_than_fit_a_chunk():
    tree = leaf_of(30)
    ids = np.arange(30, 330)
    parts = [newcomers(ids[i : i + MAX_CHUNK], seed=i) for i in range(0, 300, MAX_CHUNK)]
    grown = flat_tree([new for new, _ in parts], N_FEATURES, tree)
    assert_sound(grown)
    assert set(ids) < set(grown.hierarchy.label_order)
    table = np.concatenate([table for _, table in parts])
    found = classifiers_by_label(grown)
    np.testing.assert_allclose([found[i][1] for i in ids], table, rtol=0, atol=1e-4)
    X = random_csr(9, N_FEATURES, 0.5)
    before, after = scores_by_label(tree, X), scores_by_label(grown, X)
    assert {key: after[key] for key in before} == before
    assert len(after) == 9 * 330


def test_labels_that_come_one_by_one_share_chunks():
    """A chunk each would make every answer slower."""
    tree = None
    for label in range(MAX_CHUNK + 10):
        table = np.zeros((N_FEATURES, 1), np.float32)
        table[label % N_FEATURES] = 1 - label / 1000
        tree = flat_tree(
            [LabelChunk(np.array([label]), chunk_of(table, table[0]))], N_FEATURES, tree
        )
        assert_sound(tree)
    assert len(tree.chunk_scale) == 2
    found = classifiers_by_label(tree)
    for label in range(MAX_CHUNK + 10):
        expected = (1 - label / 1000) * (np.arange(N_FEATURES) == label % N_FEATURES)
        np.testing.assert_allclose(found[label][1], expected, atol=2e-5)


@pytest.mark.parametrize("times", [0.01, 100])
def test_labels_whose_weights_do_not_suit_a_chunk_get_their_own(times):
    """Small ones would lose their digits, and large ones would take those of the others."""
    (one, first), (other, second) = newcomers([0, 1], 1), newcomers([2, 3], 2)
    other = other._replace(chunk=other.chunk._replace(weight=other.chunk.weight * times))
    tree = flat_tree([other], N_FEATURES, flat_tree([one], N_FEATURES))
    assert len(tree.chunk_scale) == 2
    found = [classifiers_by_label(tree)[label][1] for label in range(4)]
    np.testing.assert_allclose(found[:2], first, rtol=0, atol=1e-4)
    np.testing.assert_allclose(found[2:], second * times, rtol=0, atol=1e-4 * times)


removals = st.tuples(shapes, seeds, st.floats(0, 1), seeds)


@settings(max_examples=60)
@given(removals)
def test_removed_labels_are_gone_and_the_rest_stays(removal):
    shape, seed, share, draw_seed = removal
    tree = tree_of(shape, seed)
    gone = np.flatnonzero(np.random.default_rng(draw_seed).random(shape[0]) < share)
    less = without_labels(tree, gone, N_FEATURES)
    assert_sound(less)
    before = classifiers_by_label(tree)
    assert classifiers_by_label(less) == {k: v for k, v in before.items() if k not in set(gone)}
    assert classifiers_of_nodes(less) == classifiers_of_nodes(tree)
    X = random_csr(5, N_FEATURES, 0.5, seed=seed)
    left = {key: v for key, v in scores_by_label(tree, X).items() if key[1] not in set(gone)}
    assert scores_by_label(less, X) == left
    for row in range(5):  # one row is searched in another way than many
        alone = scores_by_label(less, X[row])
        assert alone == {(0, label): v for (i, label), v in left.items() if i == row}


@pytest.mark.parametrize("shape", [(1, 2, 3), (9, 4, 20), (40, 8, 5), (90, 5, 4)])
@pytest.mark.parametrize("n_trees", [1, 3])
def test_a_tree_without_any_label_answers_nothing(shape, n_trees):
    trees = [tree_of(shape, seed) for seed in range(n_trees)]
    trees = [without_labels(tree, np.arange(shape[0]), N_FEATURES) for tree in trees]
    for n in (0, 1, 6):
        X = random_csr(n, N_FEATURES, 0.5)
        labels, scores = search_trees(trees, X, 4, Search(3, 0.5, False, 1))
        assert labels.shape == (n, 4)
        assert (labels == -1).all()
        assert (scores == -np.inf).all()


@pytest.mark.parametrize("n_trees", [1, 2])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_empty_leaves_answer_nothing_and_the_others_go_on(n_trees, n_jobs):
    trees = [tree_of((40, 8, 5), seed) for seed in range(n_trees)]
    leaves = trees[0].hierarchy.layers()[-1]
    gone = np.concatenate([trees[0].hierarchy.labels_below(leaf) for leaf in leaves[:-1]])
    left = np.setdiff1d(np.arange(40), gone)
    trees = [without_labels(tree, gone, N_FEATURES) for tree in trees]
    for n in (1, 20):
        X = random_csr(n, N_FEATURES, 0.5, seed=3)
        labels, scores = search_trees(trees, X, 12, Search(ALL, 0.5, False, n_jobs))
        assert all(set(row) == {*left.tolist(), -1} for row in labels.tolist())
        assert (np.isfinite(scores) == (labels >= 0)).all()
        narrow, _ = search_trees(trees, X, 12, Search(1, 0.5, False, n_jobs))
        assert set(narrow.ravel()) <= {*left.tolist(), -1}, "whatever leaf the beam ends in"


@settings(max_examples=30)
@given(st.integers(1, 60), seeds)
def test_labels_can_come_back_to_an_emptied_leaf(n, seed):
    tree = leaf_of(n, seed)
    gone = np.arange(n)
    new, _ = newcomers([n, n + 1], seed)
    grown = flat_tree([new], N_FEATURES, without_labels(tree, gone, N_FEATURES))
    assert_sound(grown)
    assert grown.hierarchy.labels_below(0).tolist() == new.labels.tolist()
    X = random_csr(4, N_FEATURES, 0.5, seed=seed)
    straight = flat_tree([new], N_FEATURES, tree)
    expected = {k: v for k, v in scores_by_label(straight, X).items() if k[1] not in set(gone)}
    assert scores_by_label(grown, X) == expected


@settings(max_examples=40)
@given(st.integers(1, MAX_CHUNK), st.data(), seeds)
def test_children_of_a_chunk_are_replaced_and_no_other(width, data, seed):
    random = np.random.default_rng(seed)
    table = draw(random, None, (N_FEATURES, width)) * (random.random((N_FEATURES, width)) < 0.4)
    children = sorted(data.draw(st.sets(st.integers(0, width - 1), min_size=1)))
    new_table = draw(random, None, (N_FEATURES, len(children))) * random.choice([0, 0.1, 10])
    old = packed(chunk_of(table, draw(random, None, width)), N_FEATURES)
    new = chunk_of(new_table, draw(random, None, len(children)))
    found = with_children(old, np.array(children, np.int32), new, N_FEATURES)
    expected, bias = table.copy(), old.bias.copy()
    expected[:, children], bias[children] = new_table, new.bias
    held = unpacked(found)
    features = np.repeat(held.feature, np.diff(held.entry))
    dense = csr_matrix((held.weight, (features, held.child)), shape=expected.shape).toarray()
    # rounded twice: once in the old unit, once in the new one
    unit = max(np.abs(table).max(), np.abs(expected).max()) / 32_767
    np.testing.assert_allclose(dense, expected, rtol=0, atol=1.01 * unit)
    np.testing.assert_array_equal(found.bias, bias)
    assert (np.diff(held.feature) > 0).all()
    rows = np.split(held.child, held.entry[1:-1])
    assert all((np.diff(row.astype(int)) > 0).all() for row in rows)
    assert found.child.dtype == np.uint8
    if np.abs(new_table).max() <= np.abs(table).max() and len(children) < width:
        others = np.setdiff1d(np.arange(width), children)
        before = unpacked(old)
        was = csr_matrix(
            (before.weight, (np.repeat(before.feature, np.diff(before.entry)), before.child)),
            shape=table.shape,
        ).toarray()
        if was[:, others].any():
            np.testing.assert_array_equal(dense[:, others], was[:, others])
