"""If the search is off, people get other labels than the model would give them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, vstack

from umpteen.kernels.beam import average, log_link
from umpteen.linear import search as search_module
from umpteen.linear.search import Search, search_tree, search_trees

from .random_trees import ANY, COARSE, dense_weights, random_csr, random_hierarchy, random_tree

N_FEATURES = 12
EVERYTHING = 10_000  # wider than any tree here
DEPTHS = {1: (9, 4, 20), 2: (40, 8, 5), 3: (90, 5, 4)}  # labels, branching, max_leaf

depths = pytest.mark.parametrize("depth", DEPTHS)
links = pytest.mark.parametrize("logistic", [False, True], ids=["hinge", "logistic"])


def tree_of(depth, *, values=ANY, density=0.3, seed=0):
    tree = random_tree(
        random_hierarchy(*DEPTHS[depth]), N_FEATURES, density, values=values, seed=seed
    )
    assert len(tree.hierarchy.layers()) == depth
    return tree


def samples(n=15, *, values=ANY, seed=0):
    """Random rows, one without features at all among them."""
    X = random_csr(n - 1, N_FEATURES, 0.4, values=values, seed=seed)
    return csr_matrix(vstack([X[:3], csr_matrix((1, N_FEATURES), dtype=np.float32), X[3:]]))


def probability_logarithm(margins, logistic):
    """The link, in float32 throughout."""
    if logistic:
        return -np.logaddexp(np.float32(0), -margins)
    one, two = np.float32(1), np.float32(2)
    below_one, below_two = np.maximum(0, one - margins), np.maximum(0, two - margins)
    return -below_one * below_one * below_one - np.float32(0.01) * below_two


def links_of(tree, X, logistic):
    """(samples, tree numbers): the logarithm of every edge's probability."""
    margins = X.toarray() @ dense_weights(tree, X.shape[1]).T + tree.bias
    root = np.zeros((X.shape[0], 1), np.float32)
    return np.hstack([root, probability_logarithm(margins.astype(np.float32), logistic)])


def true_scores(tree, X, path_weight, logistic):
    """(samples, labels): the definition, for every label, along its path from the root."""
    edges, hierarchy = links_of(tree, X, logistic), tree.hierarchy
    scores = np.full((X.shape[0], hierarchy.label_order.max() + 1), -np.inf, np.float32)
    for place, label in enumerate(hierarchy.label_order):
        *way, last = hierarchy.path(label)
        total = np.zeros(X.shape[0], np.float32)
        for number in way:
            total += np.float32(path_weight) * edges[:, number]
        scores[:, label] = total + edges[:, last] + tree.log_trust[place]
    return scores


def ranked(scores, k):
    """The best k of each row by sorting: best first, ties to the lowest id."""
    labels = np.full((len(scores), k), -1, np.int32)
    values = np.full((len(scores), k), -np.inf, np.float32)
    for row, given_scores in enumerate(scores):
        order = np.lexsort((np.arange(len(given_scores)), -given_scores))[:k]
        order = order[given_scores[order] > -np.inf]
        labels[row, : len(order)], values[row, : len(order)] = order, given_scores[order]
    return labels, values


def literal_beam(tree, X, k, beam_width, path_weight, logistic):
    """Layer by layer, keep the best nodes (ties to the lowest number), then rank the labels."""
    edges, hierarchy = links_of(tree, X, logistic), tree.hierarchy
    n_nodes, first_child = hierarchy.n_nodes, hierarchy.first_child
    scores = np.full((X.shape[0], hierarchy.label_order.max() + 1), -np.inf, np.float32)
    for row in range(X.shape[0]):
        beam = [(np.float32(0), 0)]
        for _ in hierarchy.layers()[1:]:
            reached = [
                (score + np.float32(path_weight) * edges[row, child], child)
                for score, node in beam
                for child in range(first_child[node], first_child[node + 1])
            ]
            beam = sorted(reached, key=lambda pair: (-pair[0], pair[1]))[:beam_width]
        for score, node in beam:
            for child in range(first_child[node], first_child[node + 1]):
                place = child - n_nodes
                label = hierarchy.label_order[place]
                scores[row, label] = score + edges[row, child] + tree.log_trust[place]
    return ranked(scores, k)


def assert_same(answer, expected):
    for ours, theirs in zip(answer, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def assert_same_bits(answer, expected):
    assert [part.tobytes() for part in answer] == [part.tobytes() for part in expected]


@links
@pytest.mark.parametrize("margin", [-200, -31, -30, -29, -3.5, -1, 0, 0.3, 1, 1.5, 2, 2.5, 40, 200])
def test_margins_become_logarithms_of_probabilities(margin, logistic):
    margin = np.float32(margin)
    found = log_link(margin, logistic)
    assert -np.inf < found <= 0
    np.testing.assert_allclose(
        found, probability_logarithm(margin, logistic), rtol=1e-5, atol=1e-12
    )


@depths
@links
@pytest.mark.parametrize("path_weight", [1.0, 0.35, 0.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_wide_beam_finds_the_truly_best_labels(depth, logistic, path_weight, seed):
    tree, X = tree_of(depth, seed=seed), samples(seed=seed)
    labels, logs = search_tree(tree, X, 6, Search(EVERYTHING, path_weight, logistic, 1))
    scores = true_scores(tree, X, path_weight, logistic)
    np.testing.assert_allclose(logs, ranked(scores, 6)[1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(logs, np.take_along_axis(scores, labels, 1), rtol=1e-4, atol=1e-4)
    assert (np.diff(logs, axis=1) <= 0).all()
    assert all(len(set(row)) == 6 for row in labels.tolist())


@depths
@pytest.mark.parametrize("path_weight", [1.0, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_ties_go_to_the_lowest_label(depth, path_weight, seed):
    """Coarse weights, where sums are exact: the same labels and bits as by sorting."""
    tree, X = tree_of(depth, values=COARSE, seed=seed), samples(values=(1.0,), seed=seed)
    answer = search_tree(tree, X, 8, Search(EVERYTHING, path_weight, False, 1))
    expected = ranked(true_scores(tree, X, path_weight, False), 8)
    assert_same(answer, expected)


@depths
@links
def test_labels_that_are_all_alike_come_by_their_number(depth, logistic):
    tree = tree_of(depth, density=0.0)
    tree.bias[:], tree.log_trust[:] = 0.5, -0.1
    labels, _ = search_tree(tree, samples(), 4, Search(EVERYTHING, 0.35, logistic, 1))
    assert (labels == np.arange(4)).all()


@depths
@pytest.mark.parametrize("beam_width", [1, 2, 3, 7])
@pytest.mark.parametrize("seed", range(3))
def test_a_narrow_beam_goes_where_the_literal_search_goes(depth, beam_width, seed):
    tree, X = tree_of(depth, values=COARSE, seed=seed), samples(values=(1.0,), seed=seed)
    answer = search_tree(tree, X, 8, Search(beam_width, 0.5, False, 1))
    assert_same(answer, literal_beam(tree, X, 8, beam_width, 0.5, False))


@depths
@links
@pytest.mark.parametrize("beam_width", [1, 3])
def test_a_narrow_beam_misses_labels_but_scores_none_wrongly(depth, logistic, beam_width):
    tree, X = tree_of(depth), samples()
    labels, logs = search_tree(tree, X, 50, Search(beam_width, 0.35, logistic, 1))
    scores = true_scores(tree, X, 0.35, logistic)
    rows, ranks = np.nonzero(labels >= 0)
    np.testing.assert_allclose(
        logs[rows, ranks], scores[rows, labels[rows, ranks]], rtol=1e-4, atol=1e-4
    )
    assert np.isneginf(logs[labels < 0]).all()


@depths
def test_more_labels_than_there_are_leave_the_rest_empty(depth):
    n_labels = DEPTHS[depth][0]
    labels, logs = search_tree(tree_of(depth), samples(), n_labels + 3, Search(999, 1.0, False, 1))
    assert (labels[:, n_labels:] == -1).all()
    assert np.isneginf(logs[:, n_labels:]).all()
    assert np.isfinite(logs[:, :n_labels]).all()
    assert (np.sort(labels[:, :n_labels]) == np.arange(n_labels)).all()


@depths
@links
@pytest.mark.parametrize("n", [15, 200])
@pytest.mark.parametrize("density", [0.05, 0.9])
def test_a_row_alone_gets_the_same_bits_as_in_a_batch(depth, logistic, n, density):
    """Batches look weights up in another way than single rows, by another way for few weights."""
    tree, X = tree_of(depth, density=density), samples(n)
    search = Search(3, 0.35, logistic, 1)
    together = search_tree(tree, X, 5, search)
    alone = [search_tree(tree, X[row], 5, search) for row in range(n)]
    assert_same_bits(together, [np.concatenate(parts) for parts in zip(*alone, strict=True)])


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("cells", [1, 100, 1000, 10**9])
def test_blocks_and_threads_do_not_change_a_bit(monkeypatch, n_jobs, cells):
    tree, X = tree_of(3), samples(60)
    expected = search_tree(tree, X, 5, Search(4, 0.35, False, 1))
    monkeypatch.setattr(search_module, "_BEAM_CELLS", cells)
    assert_same_bits(search_tree(tree, X, 5, Search(4, 0.35, False, n_jobs)), expected)


def test_no_rows_give_an_empty_answer():
    X = csr_matrix((0, N_FEATURES), dtype=np.float32)
    for trees in ([tree_of(2)], [tree_of(2), tree_of(3)]):
        labels, scores = search_trees(trees, X, 4, Search(5, 1.0, False, 2))
        assert labels.shape == scores.shape == (0, 4)


@depths
@links
def test_rows_without_features_are_answered_by_the_biases(depth, logistic):
    tree, X = tree_of(depth), csr_matrix((3, N_FEATURES), dtype=np.float32)
    labels, logs = search_tree(tree, X, 5, Search(EVERYTHING, 0.35, logistic, 1))
    expected = ranked(true_scores(tree, X, 0.35, logistic), 5)
    assert (labels == labels[0]).all()
    np.testing.assert_allclose(logs, expected[1], rtol=1e-4, atol=1e-4)


def test_one_tree_answers_with_probabilities_and_leaves_the_rest_empty():
    tree, X = tree_of(1), samples()
    labels, logs = search_tree(tree, X, 12, Search(5, 1.0, True, 1))
    again, scores = search_trees([tree], X, 12, Search(5, 1.0, True, 1))
    np.testing.assert_array_equal(again, labels)
    given_labels = labels >= 0
    np.testing.assert_array_equal(scores[given_labels], np.exp(logs[given_labels]))
    assert np.isneginf(scores[~given_labels]).all()


@pytest.mark.parametrize("slope", [1e-3, 1e-9], ids=["scores near zero", "scores near one"])
def test_equal_scores_stand_by_label_even_if_their_logarithms_differ(slope):
    """`TopK` promises it, and whoever compares two models relies on it."""
    tree = tree_of(1, density=0.0)
    n_labels, order = DEPTHS[1][0], tree.hierarchy.label_order
    tree.bias[:], tree.log_trust[:] = 3, slope * order - (200 if slope == 1e-3 else 1e-7)
    labels, scores = search_trees([tree], samples(1), n_labels, Search(5, 1.0, False, 1))
    assert len(set(scores[0].tolist())) == 1
    assert labels[0].tolist() == list(range(n_labels))


@pytest.mark.parametrize("k", [1, 4, 60])
def test_several_trees_answer_by_their_mean(k):
    X, search = samples(), Search(EVERYTHING, 0.35, True, 1)
    trees = [tree_of(depth, seed=depth) for depth in (2, 3, 2)]
    labels, scores = search_trees(trees, X, k, search)
    table = np.zeros((3, X.shape[0], 90))
    for tree, page in zip(trees, table, strict=True):
        named, logs = search_tree(tree, X, max(k, search_module._VOTES), search)
        for row in range(X.shape[0]):
            kept = named[row] >= 0
            page[row, named[row, kept]] = np.exp(logs[row, kept])
    means = table.mean(axis=0)
    np.testing.assert_allclose(scores, ranked(means, k)[1], rtol=1e-5)
    np.testing.assert_allclose(scores, np.take_along_axis(means, labels, 1), rtol=1e-5)


def mean_by_hand(labels, scores, n_trees, k):
    answers = []
    for row_labels, row_scores in zip(labels.tolist(), scores.tolist(), strict=True):
        totals = {}
        for label, score in zip(row_labels, row_scores, strict=True):
            if label >= 0:
                totals[label] = totals.get(label, 0.0) + score
        best = sorted((-total / n_trees, label) for label, total in totals.items())[:k]
        best += [(np.inf, -1)] * (k - len(best))
        answers.append([(label, -negative) for negative, label in best])
    return answers


@settings(max_examples=60)
@given(st.data(), st.integers(1, 4), st.integers(1, 5), st.integers(1, 12))
def test_means_over_trees_are_those_by_hand(data, n_trees, per_tree, k):
    """A label that a tree did not name counts zero there; scores are sixteenths, sums are exact."""
    rows, votes = data.draw(st.integers(0, 3)), st.sets(st.integers(0, 9), max_size=per_tree)
    labels = np.full((rows, n_trees * per_tree), -1, np.int32)
    scores = np.zeros(labels.shape, np.float32)
    for row in range(rows):
        for tree in range(n_trees):
            named = sorted(data.draw(votes))
            begin = tree * per_tree
            labels[row, begin : begin + len(named)] = named
            for place in range(len(named)):
                scores[row, begin + place] = data.draw(st.integers(0, 16)) / 16
    best, means = average(labels, scores, n_trees, k)
    expected = mean_by_hand(labels, scores, n_trees, k)
    assert best.tolist() == [[label for label, _ in row] for row in expected]
    wanted = np.array([[mean for _, mean in row] for row in expected]).reshape(rows, k)
    np.testing.assert_allclose(means, wanted, rtol=1e-6)
