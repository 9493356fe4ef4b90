"""If a node learns from the wrong samples, its labels are confused with their neighbours."""

import weakref
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from umpteen import parallel
from umpteen.linear import training
from umpteen.linear.chunks import join, plan_chunks, split
from umpteen.linear.search import Search, search_tree
from umpteen.linear.training import Solver, learn_trust, memberships, train_tree
from umpteen.progress import Bar
from umpteen.trees import Hierarchy, grow, label_representation

from .random_trees import dense_weights, random_csr, random_hierarchy

SOLVER = Solver(
    logistic=False, cost=1.0, positive_weight=1.0, tolerance=0.1, max_epochs=20, prune=0.05,
    hard_negatives=0, seed=0,
)  # fmt: skip


def solver(**changes) -> Solver:
    return Solver(**{**vars(SOLVER), **changes})


def problem(n_samples=150, n_labels=40, seed=0):
    """Samples that look like the sum of their labels, some of them without any."""
    Y = random_csr(n_samples, n_labels, 0.05, values=(1.0,), seed=seed)
    looks = random_csr(n_labels, 25, 0.2, values=(1.0,), seed=seed + 1)
    X = Y @ looks + random_csr(n_samples, 25, 0.05, values=(1.0,), seed=seed + 2)
    assert (np.diff(Y.indptr) == 0).any()
    return csr_matrix(X, dtype=np.float32), Y


def test_joined_chunks_are_not_held_twice():
    """With a million labels, the weights alone are gigabytes."""
    X, Y = problem()
    hierarchy = tree_over(X, Y)
    tree, _ = train_tree(X, Y, hierarchy, solver(), 1, Bar())
    chunks = split(tree)
    held = [weakref.ref(chunk.entry) for chunk in chunks]
    again = join(hierarchy, tree.node_chunk, training._emptied(chunks))
    np.testing.assert_array_equal(again.weight, tree.weight)
    np.testing.assert_array_equal(again.entry, tree.entry)
    assert chunks == []
    assert all(each() is None for each in held)


def tree_over(X, Y, branching=4, max_leaf=4):
    rows = label_representation(X, Y)
    return grow(rows, branching=branching, max_leaf=max_leaf, n_jobs=1)


def samples_with_a_label_below(Y, hierarchy):
    """(samples, tree numbers), by walking up from every label of every sample."""
    table = np.zeros((Y.shape[0], len(hierarchy.parents())), bool)
    for sample, label in zip(*Y.nonzero(), strict=True):
        table[sample, hierarchy.path(label)] = True
    return table


@settings(max_examples=30)
@given(st.integers(1, 30), st.integers(2, 5), st.integers(1, 6), st.integers(0, 100))
def test_memberships_say_which_children_hold_a_label_of_a_sample(n, branching, max_leaf, seed):
    hierarchy = random_hierarchy(n, branching, max_leaf, seed=seed)
    Y = random_csr(12, n + 3, 0.2, values=(1.0,), seed=seed)  # three labels have no place
    below = samples_with_a_label_below(Y, hierarchy)
    found = list(memberships(Y, hierarchy))
    assert len(found) == len(hierarchy.layers())
    for nodes, member in zip(hierarchy.layers(), found, strict=True):
        first, last = hierarchy.first_child[[nodes.start, nodes.stop]]
        expected = np.zeros_like(below)
        expected[:, first:last] = below[:, first:last]
        np.testing.assert_array_equal(member.toarray() != 0, expected)
        assert member.has_sorted_indices
        assert member.indices.dtype == member.indptr.dtype == np.int32


@pytest.fixture
def samples_of_nodes(monkeypatch):
    """Which samples each node learnt from, filled while a tree is trained on one thread."""
    seen, real = {}, training.train_chunk

    def recording(indptr, indices, data, samples, *rest):
        first = int(rest[3])
        seen.setdefault(first, []).append(np.array(samples))
        return real(indptr, indices, data, samples, *rest)

    monkeypatch.setattr(training, "train_chunk", recording)
    return seen


def by_node(seen, hierarchy):
    plan = plan_chunks(hierarchy.first_child)
    return {
        int(plan.chunk_node[np.searchsorted(plan.chunk_child, first)]): samples[0]
        for first, samples in seen.items()
    }


def test_a_node_learns_from_the_samples_below_it_and_the_root_from_all(samples_of_nodes):
    X, Y = problem()
    hierarchy = tree_over(X, Y)
    train_tree(X, Y, hierarchy, solver(), 1, Bar())
    below, found = samples_with_a_label_below(Y, hierarchy), by_node(samples_of_nodes, hierarchy)
    assert sorted(found) == list(range(hierarchy.n_nodes))
    assert found[0].tolist() == list(range(X.shape[0])), "also those without labels"
    for node in range(1, hierarchy.n_nodes):
        assert found[node].tolist() == np.flatnonzero(below[:, node]).tolist()


@pytest.mark.parametrize("hard_negatives", [1, 3, 100])
def test_hard_negatives_come_on_top_of_all_positives(samples_of_nodes, hard_negatives):
    X, Y = problem()
    hierarchy = tree_over(X, Y)
    train_tree(X, Y, hierarchy, solver(hard_negatives=hard_negatives), 1, Bar())
    below, found = samples_with_a_label_below(Y, hierarchy), by_node(samples_of_nodes, hierarchy)
    for nodes in hierarchy.layers()[1:]:
        for node in nodes:
            assert set(np.flatnonzero(below[:, node])) <= set(found[node])
            assert (np.diff(found[node]) > 0).all(), "each sample once"
        visits = np.bincount(np.concatenate([found[node] for node in nodes]))
        positives = below[:, nodes.start : nodes.stop].sum(axis=1)
        most = min(hard_negatives, len(nodes))
        assert (visits >= np.maximum(positives, most)).all(), "every sample is sent that often"
        assert (visits <= positives + most).all()


def test_nodes_above_the_leaves_learn_from_fewer_samples_if_asked(samples_of_nodes):
    """Then the root, which would learn from all, fits into memory; leaves keep rare labels."""
    X, Y = problem()
    hierarchy = tree_over(X, Y)
    leaves = hierarchy.layers()[-1]
    assert len(hierarchy.layers()) > 2
    train_tree(X, Y, hierarchy, solver(upper_samples=15), 1, Bar())
    below, found = samples_with_a_label_below(Y, hierarchy), by_node(samples_of_nodes, hierarchy)
    below[:, 0] = True
    for node in range(hierarchy.n_nodes):
        everyone = set(np.flatnonzero(below[:, node]))
        assert set(found[node]) <= everyone
        assert len(found[node]) == (len(everyone) if node in leaves else min(15, len(everyone)))
        assert (np.diff(found[node]) > 0).all(), "in order, each once"
    assert sum(len(found[node]) == 15 for node in range(leaves.start)) > 1
    assert found[0].max() > 30, "not the first ones"


def test_hard_negatives_are_the_nodes_that_the_layers_above_like_best(samples_of_nodes):
    X, Y = problem()
    hierarchy = tree_over(X, Y, branching=12, max_leaf=4)
    assert len(hierarchy.layers()) == 2
    tree, _ = train_tree(X, Y, hierarchy, solver(hard_negatives=2), 1, Bar())
    n_leaves = hierarchy.n_nodes - 1
    margins = X.toarray() @ dense_weights(tree, X.shape[1])[:n_leaves].T + tree.bias[:n_leaves]
    below, found = samples_with_a_label_below(Y, hierarchy), by_node(samples_of_nodes, hierarchy)
    for sample, row in enumerate(margins):
        liked = np.flatnonzero(row > np.sort(row)[-3] + 1e-4)[:2]  # clear winners
        for leaf in liked[row[liked] < 2]:
            assert sample in found[leaf + 1]
        reached = {leaf for leaf in range(n_leaves) if sample in found[leaf + 1]}
        extra = reached - set(np.flatnonzero(below[sample, 1 : 1 + n_leaves]))
        assert all(row[leaf] >= np.sort(row)[-2] - 1e-4 for leaf in extra)


@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("n_jobs", [2, 4])
def test_threads_do_not_change_a_bit(logistic, n_jobs):
    X, Y = problem()
    hierarchy = tree_over(X, Y)
    settings_ = solver(logistic=logistic, hard_negatives=2)
    alone, together = (train_tree(X, Y, hierarchy, settings_, n, Bar())[0] for n in (1, n_jobs))
    for ours, theirs in zip(alone.arrays, together.arrays, strict=True):
        assert ours.tobytes() == theirs.tobytes()


class Wide:
    """An engine with so many cores, here in this process."""

    def __init__(self, width):
        self.width, self.steps = width, []

    def map(self, function, items, shared):
        self.steps.append([item.item for item in items])
        for item in items:
            yield function(item, *shared)


@pytest.mark.parametrize("prune", [0.0, 0.05])
@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("width", [2, 5, 64])
def test_chunks_that_are_trained_in_parts_are_the_same(logistic, width, prune):
    """Otherwise a model would depend on the number of nodes."""
    X, Y = random_csr(150, 25, 0.3, seed=0), random_csr(150, 300, 0.02, values=(1.0,), seed=1)
    hierarchy = tree_over(X, Y, branching=150, max_leaf=2)
    settings_ = solver(logistic=logistic, hard_negatives=2, prune=prune)
    split, engine = np.arange(150) % 5 == 0, Wide(width)
    expected = train_tree(X, Y, hierarchy, settings_, 1, Bar(), split)
    with parallel.engine(engine):
        found = train_tree(X, Y, hierarchy, settings_, 1, Bar(), split)
    for ours, theirs in zip(expected, found, strict=True):
        for one, other in zip(ours.arrays, theirs.arrays, strict=True):
            assert one.dtype == other.dtype
            assert one.tobytes() == other.tobytes()
    ends = {  # of the root's two chunks, and where these are cut
        2: [1, 81, 144],
        5: [1, 49, 81, 113, 144],
        64: [1, 17, 33, 49, 65, 81, 97, 113, 129, 144],
    }
    assert [(first, last) for first, last, _ in engine.steps[0]] == list(pairwise(ends[width]))


def test_samples_without_labels_speak_against_what_they_contain():
    """Feature 2 comes only with rows that have no label: it must not vote for any."""
    rows = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1], [0, 0, 1]] * 6, np.float32)
    labels = np.array([[1, 0], [0, 1], [0, 0], [0, 0], [0, 0]] * 6, np.float32)
    X, Y = csr_matrix(rows), csr_matrix(labels)
    tree, _ = train_tree(X, Y, tree_over(X, Y), solver(), 1, Bar())
    assert (dense_weights(tree, 3)[:, 2] < 0).all()


@pytest.mark.parametrize("n_labels", [1, 2, 30])
def test_few_labels_make_a_tree_of_one_node(n_labels):
    X, Y = problem(n_labels=n_labels)
    hierarchy = tree_over(X, Y, max_leaf=100)
    assert hierarchy.n_nodes == 1
    tree, _ = train_tree(X, Y, hierarchy, solver(hard_negatives=5), 2, Bar())
    labels, logs = search_tree(tree, X, 1, Search(5, 1.0, False, 1))
    known = np.diff(Y.indptr) > 0
    hits = [Y[row, label] > 0 for row, label in enumerate(labels[:, 0]) if known[row]]
    assert np.mean(hits) > 0.9
    assert np.isfinite(logs).all()


def test_a_tree_learns_what_its_samples_show():
    X, Y = problem(n_samples=400)
    tree, _ = train_tree(X, Y, tree_over(X, Y), solver(hard_negatives=2), 1, Bar())
    labels, _ = search_tree(tree, X, 1, Search(10, 1.0, False, 1))
    known = np.flatnonzero(np.diff(Y.indptr))
    assert np.mean([Y[row, labels[row, 0]] > 0 for row in known]) > 0.85


def test_progress_counts_every_chunk():
    class Counting(Bar):
        total = 0

        def advance(self, amount=1.0, **fields):
            self.total += amount

    X, Y = problem()
    hierarchy, bar = tree_over(X, Y), Counting()
    train_tree(X, Y, hierarchy, solver(), 2, bar)
    assert bar.total == len(plan_chunks(hierarchy.first_child).chunk_node)


def test_labels_that_are_often_wrong_are_trusted_less():
    """The definition, label by label; labels that are never named keep most of their score."""
    X, Y = problem()
    tree, _ = train_tree(X, Y, tree_over(X, Y), solver(hard_negatives=2), 1, Bar())
    search = Search(10, 0.35, False, 1)
    labels, logs = search_tree(tree, X, 10, search)
    learn_trust(tree, X, Y, search, tree.hierarchy.label_order)
    for place, label in enumerate(tree.hierarchy.label_order):
        rows = np.flatnonzero(((labels == label) & (logs >= np.log(0.3))).any(axis=1))
        n_right = sum(Y[row, label] > 0 for row in rows)
        expected = 0.3 * np.log((n_right + 1) / (len(rows) + 1.2))
        np.testing.assert_allclose(tree.log_trust[place], expected, rtol=1e-5)
    assert tree.log_trust.max() <= 0


def test_trust_is_defined_where_no_label_scores_well():
    X, Y = problem()
    tree, _ = train_tree(X, Y, tree_over(X, Y), solver(), 1, Bar())
    tree.bias[:] -= 100
    learn_trust(tree, X, Y, Search(10, 1.0, False, 1), tree.hierarchy.label_order)
    np.testing.assert_allclose(tree.log_trust, 0.3 * np.log(1 / 1.2), rtol=1e-5)


def test_labels_of_samples_without_features_are_trained_on_their_bias():
    hierarchy = Hierarchy(np.array([1, 4], np.int32), np.arange(3, dtype=np.int32))
    Y = csr_matrix(np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0]], np.float32))
    tree, _ = train_tree(csr_matrix((3, 2), dtype=np.float32), Y, hierarchy, solver(), 1, Bar())
    assert len(tree.weight) == 0
    assert tree.bias[0] > 0 > tree.bias[1] > tree.bias[2]
