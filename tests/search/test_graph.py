"""The approximate way: it must find nearly all, and never what is gone."""

from copy import deepcopy

import numpy as np
import pytest

import umpteen as um
from umpteen.errors import MissingExtraError, ModelCorruptError
from umpteen.search import LabelIndex, index
from umpteen.search.graph import Graph

pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def data():
    """8,000 vectors around 100 centres, and 200 queries from the same clusters."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((100, 48))
    table = centres[rng.integers(0, 100, 8200)] + rng.standard_normal((8200, 48))
    return table[:8000].astype(np.float32), table[8000:].astype(np.float32)


@pytest.fixture
def built(data):
    return LabelIndex(data[0][:2000], method="hnsw")


def test_recall_with_the_default_settings(data):
    table, queries = data
    found = LabelIndex(table, method="hnsw")
    assert found.recall(queries, 10) >= 0.9
    true = LabelIndex(table, method="exact").topk(queries, 10).labels
    top = found.topk(queries, 10)
    hits = [len(set(a) & set(b)) / 10 for a, b in zip(top.labels, true, strict=True)]
    assert np.mean(hits) == pytest.approx(found.recall(queries, 10))


def test_scores_are_the_bits_of_exact_search(data, built):
    queries = data[1]
    top = built.topk(queries, 5)
    everything = LabelIndex(data[0][:2000], method="exact").topk(queries, 2000)
    expected = everything.to_csr(2000)
    rows = np.arange(len(queries))[:, None]
    np.testing.assert_array_equal(top.scores, expected[rows, top.labels].toarray())
    order = np.lexsort((top.labels, -top.scores))
    np.testing.assert_array_equal(order, np.tile(np.arange(5), (len(queries), 1)))


def test_near_labels_are_those_of_topk(data, built):
    queries = data[1] / np.linalg.norm(data[1], axis=1, keepdims=True)
    queries[3] = 0
    for n_queries in (1, 200):
        near = built.near(queries[:n_queries], 7, n_queries)
        top = built.topk(queries[:n_queries], 7).labels
        np.testing.assert_array_equal(np.sort(near), np.sort(top))
    built.remove(np.arange(2000))
    assert (built.near(queries, 3, 200) == -1).all()


def test_recall_falls_with_a_beam_of_one(data):
    table, queries = data
    found = LabelIndex(table, method="hnsw", n_links=4, build_width=8)
    wide = found.recall(queries, 1)
    found.beam_width = 1
    assert found.recall(queries, 1) < wide


def test_the_graph_is_the_same_for_any_number_of_threads(data):
    one, two = (LabelIndex(data[0][:3000], method="hnsw", n_jobs=n).graph for n in (1, 2))
    assert one.entry == two.entry
    np.testing.assert_array_equal(one.links, two.links)


def test_removed_labels_are_never_answered_and_added_ones_are_found(data, built):
    table, queries = data
    gone = np.arange(0, 2000, 3)
    built.remove(gone)
    assert not np.isin(built.topk(queries, 50).labels, gone).any()
    assert built.recall(queries, 10) >= 0.9
    new = built.add(table[2000:3000])
    assert (built.topk(table[2000:3000], 1).labels.ravel() == new).mean() > 0.95
    assert built.recall(queries, 10) >= 0.9


def test_when_most_are_removed_the_graph_is_built_anew(data, built):
    built.remove(np.arange(1500))
    assert len(built.graph.ids) == 500
    assert built.recall(data[1], 10) >= 0.9
    built.remove(np.arange(2000))
    assert (built.topk(data[1], 3).labels == -1).all()
    assert built.add(data[0][:1]).tolist() == [2000]
    assert built.topk(data[0][:1], 2).labels.tolist() == [[2000, -1]]


def test_zero_rows_ties_and_more_than_all(data):
    table = np.zeros((40, 48), np.float32)
    table[10:30] = data[0][0]
    found = LabelIndex(table, method="hnsw")
    top = found.topk(np.vstack([data[0][:1], table[:1]]), 30)
    assert top.labels[0].tolist() == [*range(10, 30), *[-1] * 10]
    assert (top.labels[1] == -1).all()
    assert found.recall(data[0][:1], 5) == 1
    assert LabelIndex(np.zeros((2, 3)), method="hnsw").recall(np.ones((1, 3))) == 1


def test_a_saved_graph_answers_the_same_and_grows_the_same(tmp_path, data, built):
    table, queries = data
    built.remove([5, 6])
    before = built.topk(queries, 8)
    built.save(tmp_path / "index")
    opened = um.load(tmp_path / "index")
    assert opened.topk(queries, 8) == before
    for one in (built, opened):
        one.add(table[2000:2500])
        one.remove([7])
    np.testing.assert_array_equal(opened.graph.links, built.graph.links)
    assert opened.topk(queries, 8) == built.topk(queries, 8)


def test_a_copy_is_whole_and_leaves_the_first_alone(data, built):
    built.remove([5])
    before = built.topk(data[1], 8)
    copied = deepcopy(built)
    assert copied.topk(data[1], 8) == before
    copied.remove([6])
    copied.add(data[0][2000:2100])
    assert built.topk(data[1], 8) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda graph: graph.links.__setitem__(3, 10**6),
        lambda graph: graph.links.__setitem__(3, -2),
        lambda graph: graph.ids.__setitem__(0, 10**6),
        lambda graph: graph.n_levels.__setitem__(0, 3),
        lambda graph: graph.n_levels.__setitem__(0, -1),
        lambda graph: setattr(graph, "entry", -1),
        lambda graph: setattr(graph, "entry", int(np.argmin(graph.n_levels))),
        lambda graph: setattr(graph, "hidden", graph.hidden[1:]),
        lambda graph: lead_up_to_nowhere(graph),
    ],
)
def test_a_damaged_graph_is_an_error_not_a_crash(data, built, damage):
    good = built.graph
    built.graph = Graph(
        good.n_links, good.entry, good.ids.copy(), good.n_levels.copy(), good.links.copy(),
        good.hidden,
    )  # fmt: skip
    damage(built.graph)
    with pytest.raises(ModelCorruptError, match="damaged"):
        built.topk(data[1], 3)


def lead_up_to_nowhere(graph):
    """A link on the second level to a node that is only on the first."""
    place = graph._offsets()[np.argmax(graph.n_levels)] + 2 * graph.n_links
    graph.links[place] = np.argmin(graph.n_levels)


def test_auto_takes_the_way_that_suits_size_and_use(monkeypatch, data):
    table, queries = data
    monkeypatch.setattr(index, "_GRAPH_PAYS", {"single": 1000 * 48, "batch": 3000 * 48})
    assert LabelIndex(table[:999], use="single").graph is None
    assert LabelIndex(table[:2999]).graph is None
    assert LabelIndex(table[:3000]).graph is not None
    found = LabelIndex(table[:999], use="single")
    found.add(table[999:1000])
    assert len(found.graph.ids) == 1000
    ways = []
    monkeypatch.setattr(LabelIndex, "_answer", lambda *_, by_graph: ways.append(by_graph))
    found.topk(queries[:1], 1)
    found.topk(queries, 1)
    assert ways == [True, False]


def test_opened_without_the_library_auto_is_exact_and_hnsw_says_so(tmp_path, monkeypatch, data):
    monkeypatch.setattr(index, "_GRAPH_PAYS", {"single": 0, "batch": 0})
    table, queries = data[0][:500], data[1]
    for method in ("auto", "hnsw"):
        LabelIndex(table, method=method).save(tmp_path / method)
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    monkeypatch.setattr(index, "is_available", lambda: False)
    opened = um.load(tmp_path / "auto")
    assert opened.topk(queries, 3) == LabelIndex(table, method="exact").topk(queries, 3)
    opened.remove([0])
    assert opened.add(table[:1]).tolist() == [500]
    opened = um.load(tmp_path / "hnsw")
    with pytest.raises(MissingExtraError, match=r"umpteen\[neural\]"):
        opened.topk(queries, 3)
    with pytest.raises(MissingExtraError):
        opened.add(table[:1])
    assert opened.n_labels == 500
