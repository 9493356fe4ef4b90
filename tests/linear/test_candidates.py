"""Scores of given labels are trusted by whoever learns from them: they must be the search's own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, lil_matrix

import umpteen as um
from umpteen.linear import TreeRecipe
from umpteen.linear import search as search_module
from umpteen.linear.search import Search, score_candidates, search_trees

from .random_trees import random_csr, random_hierarchy, random_tree
from .test_search import EVERYTHING, N_FEATURES, depths, links, samples, tree_of, true_scores

PLACED, N_LABELS = 37, 40  # the last three labels have no place in any tree


def pattern(n_rows, density, seed, n_labels=N_LABELS):
    """Random labels per row; the first row asks for nothing, the second for everything."""
    asked = np.random.default_rng(seed).random((n_rows, n_labels)) < density
    asked[:1], asked[1:2] = False, True
    return csr_matrix(asked, dtype=np.float32)


def at(table, candidates):
    rows = np.repeat(np.arange(candidates.shape[0]), np.diff(candidates.indptr))
    return np.asarray(table)[rows, candidates.indices]


def table_of(top, n_labels):
    """(samples, labels): what was offered, and 0 elsewhere."""
    return um.TopK(*top).to_csr(n_labels).toarray()


def trees_of(n_trees, branching, max_leaf, seed=0):
    shape = (PLACED, branching, max_leaf)
    return [
        random_tree(random_hierarchy(*shape, seed=seed + i), N_FEATURES, seed=seed + i)
        for i in range(n_trees)
    ]


@depths
@links
@pytest.mark.parametrize("path_weight", [1.0, 0.35, 0.0])
def test_scores_are_the_products_along_the_ways(depth, logistic, path_weight):
    tree, X = tree_of(depth), samples()
    expected = np.exp(np.maximum(true_scores(tree, X, path_weight, logistic), -87))
    candidates = pattern(X.shape[0], 0.3, depth, expected.shape[1])
    found = score_candidates([tree], X, candidates, Search(1, path_weight, logistic, 1))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, at(expected, candidates), rtol=1e-4)


@settings(max_examples=60)
@given(
    st.integers(0, 20), st.sampled_from([0.0, 0.05, 0.5, 1.0]), st.sampled_from([1, 3]),
    st.sampled_from([(2, 1), (2, 3), (3, 6), (8, 5), (4, 50)]), st.booleans(),
    st.integers(1, 3_000), st.integers(0, 99),
)  # fmt: skip
def test_the_same_bits_as_a_search_of_everything(
    n_rows, density, n_trees, shape, logistic, block_cells, seed
):
    """Whatever is asked, in whatever blocks; labels without a place get zero."""
    trees, search = trees_of(n_trees, *shape, seed=seed), Search(EVERYTHING, 0.35, logistic, 1)
    X = random_csr(n_rows, N_FEATURES, 0.3, seed=seed)
    candidates = pattern(n_rows, density, seed)
    everything = table_of(search_trees(trees, X, N_LABELS, search), N_LABELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_module, "_BLOCK_CELLS", block_cells)
        found = score_candidates(trees, X, candidates, search._replace(beam_width=1))
    assert found.tobytes() == at(everything, candidates).tobytes()
    assert (found[candidates.indices >= PLACED] == 0).all()
    assert (found[candidates.indices < PLACED] > 0).all()


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_the_same_bits_for_any_number_of_threads(n_jobs, monkeypatch):
    monkeypatch.setattr(search_module, "_BLOCK_CELLS", 500)
    trees, X, candidates = trees_of(2, 4, 3), samples(200), pattern(200, 0.2, 0)
    one = score_candidates(trees, X, candidates, Search(8, 0.35, False, 1))
    more = score_candidates(trees, X, candidates, Search(8, 0.35, False, n_jobs))
    assert one.tobytes() == more.tobytes()


@given(st.lists(st.integers(1, 5_000_000), max_size=30), st.integers(1, 12))
def test_blocks_cover_every_row_and_stay_small(cells, most_rows):
    blocks = list(search_module._blocks(np.array(cells, np.int64), most_rows))
    assert [row for first, last in blocks for row in range(first, last)] == list(range(len(cells)))
    for first, last in blocks:
        in_all = (last - first) * max(cells[first:last])
        assert last - first == 1 or in_all <= search_module._BLOCK_CELLS
        assert last - first <= most_rows


def test_scores_too_small_for_a_float_are_as_the_search_gives_them():
    tree, X = tree_of(2), samples()
    tree.log_trust[:] = -200
    found = score_candidates([tree], X, pattern(X.shape[0], 1, 0), Search(8, 1.0, False, 1))
    assert set(found.tolist()) == {float(np.exp(np.float32(-87)))}


@pytest.fixture(scope="module")
def data():
    return um.data.make_extreme(400, 500, 120, label_features=True, random_state=0)


def corners(data):
    """Features and labels with a label without samples and a sample without features."""
    X, Y = lil_matrix(data.test.X[:60]), lil_matrix(data.train.Y)
    X[3], Y[:, 5] = 0, 0
    return csr_matrix(X), csr_matrix(Y)


def assert_scores_are_those_of_predict_topk(model, X, seed=0):
    candidates = pattern(X.shape[0], 0.2, seed, model.n_labels_)
    found = model.score_labels(X, candidates)
    top = model.predict_topk(X, k=model.n_labels_, beam_width=EVERYTHING)
    np.testing.assert_array_equal(found.indptr, candidates.indptr)
    np.testing.assert_array_equal(found.indices, candidates.indices)
    expected = at(table_of((top.labels, top.scores), model.n_labels_), candidates)
    assert found.data.tobytes() == expected.tobytes()


@pytest.mark.parametrize("n_trees", [1, 3])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize(("branching", "max_leaf"), [(3, 4), (512, 8), (2, 1000)])
def test_a_label_tree_scores_labels_as_it_predicts_them(data, n_trees, loss, branching, max_leaf):
    X, Y = corners(data)
    model = um.LabelTree(
        n_trees=n_trees, recipe=TreeRecipe(loss=loss), branching=branching, max_leaf=max_leaf
    )
    assert_scores_are_those_of_predict_topk(model.fit(data.train.X, Y), X)
    assert (model.score_labels(X, [[5]] * 60).data == 0).all()
    assert (model.score_labels(X.toarray(), [[6]] * 60).data > 0).all()


@pytest.mark.parametrize("n_trees", [1, 2])
def test_labels_that_came_or_went_are_scored_as_predicted(data, n_trees):
    X, Y = corners(data)
    model = um.LabelTree(n_trees=n_trees, branching=3, max_leaf=4)
    model.fit(data.train.X, Y[:, :110])
    model.remove_labels(model.trees_[0].hierarchy.label_order[:4])  # the first leaf is empty now
    assert_scores_are_those_of_predict_topk(model, X)
    model.add_labels(data.train.X, Y[:, 110:])
    assert_scores_are_those_of_predict_topk(model, X)


@pytest.mark.parametrize("weight", [0, 0.3])
def test_texts_of_labels_count_as_in_prediction(data, weight):
    X, Y = corners(data)
    model = um.LabelTree(branching=3, max_leaf=4, recipe=TreeRecipe(label_text_weight=weight))
    model.fit(data.train.X, Y, label_features=data.label_features)
    assert_scores_are_those_of_predict_topk(model, X)


def test_a_narrow_beam_overlooks_labels_that_are_scored_all_the_same(data):
    model = um.LabelTree(branching=3, max_leaf=4, beam_width=1).fit(data.train.X, data.train.Y)
    X, everything = data.test.X[:20], np.ones((20, 120))
    offered = model.predict_topk(X, k=120).to_csr(120)
    assert offered.nnz < everything.size / 2
    scores = model.score_labels(X, everything).toarray()
    np.testing.assert_array_equal(scores[offered.nonzero()], offered.data)
    assert (scores > 0).all()
