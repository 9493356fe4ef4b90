"""A wrong nearest label is a wrong answer that nobody notices: exact search is held to the bit."""

from contextlib import ExitStack

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import ThreadpoolController

import umpteen as um
from umpteen.errors import FeaturesError, LabelsError, MissingExtraError, ParameterError
from umpteen.parallel import one_thread_each
from umpteen.search import LabelIndex, exact, index, vectors
from umpteen.search.exact import rounding
from umpteen.validation import unit_rows


def literal_topk(units, present, queries, k):
    """One query after another, all products in a list, sorted."""
    labels = np.full((len(queries), k), -1)
    scores = np.full((len(queries), k), -np.inf, np.float32)
    for row, query in enumerate(queries):
        if not query.any():
            continue
        pairs = [
            (-np.float32(literal_product(query, units[i])), i) for i in np.flatnonzero(present)
        ]
        for place, (score, label) in enumerate(sorted(pairs)[:k]):
            labels[row, place], scores[row, place] = label, -score
    return labels, scores


def literal_product(left, right):
    """Eight sums in float64, as `product` promises, then these in order."""
    terms = [float(a) * float(b) for a, b in zip(left, right, strict=True)]
    whole = len(terms) - len(terms) % 8
    sums = [0.0] * 8
    for place, term in enumerate(terms):
        sums[place % 8 if place < whole else 0] += term
    total = 0.0
    for part in sums:
        total += part
    return total


def blas_threads():
    pools = ThreadpoolController().info()
    return [pool["num_threads"] for pool in pools if pool["user_api"] == "blas"]


def random_vectors(n, dim=16, seed=0):
    return np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32)


@st.composite
def crowded(draw):
    """Few different directions, so that duplicates, ties and zero rows are common."""
    dim = draw(st.integers(1, 11))
    numbers = st.sampled_from([-1.0, 0.0, 0.0, 0.5, 1.0, 3.0])
    row = st.lists(numbers, min_size=dim, max_size=dim)
    table = draw(st.lists(row, min_size=1, max_size=25))
    queries = draw(st.lists(row, min_size=1, max_size=6))
    return np.array(table, np.float32), np.array(queries, np.float32)


@settings(max_examples=150, deadline=None)
@given(crowded(), st.integers(1, 30), st.sets(st.integers(0, 24)), st.integers(1, 7))
def test_exact_is_the_literal_answer_with_ties_duplicates_and_zero_rows(data, k, gone, block):
    table, queries = data
    found = LabelIndex(table, method="exact", n_jobs=1)
    found.remove([label for label in gone if label < len(table)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "_BLOCK_VECTORS", block)
        patch.setattr(exact, "_BLOCK_QUERIES", block)
        patch.setattr(exact, "_FEW", block)
        top = found.topk(queries, k)
    present = table.any(axis=1) & ~np.isin(np.arange(len(table)), list(gone))
    labels, scores = literal_topk(unit_rows(table), present, unit_rows(queries), min(k, len(table)))
    np.testing.assert_array_equal(top.labels, labels)
    np.testing.assert_array_equal(top.scores, scores)


def test_duplicates_stand_by_id_wherever_their_block_begins():
    """A matrix product alone gives equal rows unequal scores at the edges of its blocks."""
    table = np.repeat(random_vectors(1, 300), 5000, axis=0)
    queries = random_vectors(300, 300, seed=1)
    top = LabelIndex(table, method="exact").topk(queries, 7)
    np.testing.assert_array_equal(top.labels, np.tile(np.arange(7), (300, 1)))
    assert (top.scores == top.scores[:, :1]).all()


def test_same_bits_for_any_threads_blocks_and_company(monkeypatch):
    table, queries = random_vectors(3000, 40), random_vectors(600, 40, seed=1)
    expected = LabelIndex(table, method="exact", n_jobs=1).topk(queries, 9)
    assert LabelIndex(table, method="exact", n_jobs=4).topk(queries, 9) == expected
    alone = LabelIndex(table, method="exact")
    assert (
        um.TopK.concatenate([alone.topk(queries[i : i + 1], 9) for i in range(20)])
        == (expected[:20])
    )
    monkeypatch.setattr(exact, "_BLOCK_VECTORS", 17)
    assert LabelIndex(table, method="exact").topk(queries, 9) == expected
    monkeypatch.setattr(exact, "_FEW", 10**6)
    monkeypatch.setattr(exact, "_SCAN_NUMBERS", 1000)
    assert LabelIndex(table, method="exact", n_jobs=7).topk(queries, 9) == expected


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 700), st.integers(0, 10**6), st.booleans())
def test_a_rough_product_is_within_the_margin(dim, seed, positive):
    table = random_vectors(50, dim, seed)
    units = unit_rows(np.abs(table) if positive else table)
    rough = units @ units.T
    true = units.astype(np.float64) @ units.T.astype(np.float64)
    assert np.abs(rough - true).max() <= rounding(dim) / 2


def test_lengths_do_not_matter_and_input_is_left_alone():
    table = random_vectors(50)
    before = table.copy()
    long = LabelIndex(table * np.float32(1e18))
    top = LabelIndex(table).topk(table * np.float32(1e-18), 3)
    np.testing.assert_array_equal(top.labels, long.topk(table, 3).labels)
    np.testing.assert_array_equal(table, before)
    assert (top.labels[:, 0] == np.arange(50)).all()
    np.testing.assert_allclose(top.scores[:, 0], 1, atol=1e-6)


def test_large_tables_come_to_unit_length_block_by_block(monkeypatch):
    table = random_vectors(100)
    monkeypatch.setattr(vectors, "_BLOCK_ROWS", 7)
    np.testing.assert_array_equal(LabelIndex(table).vectors, unit_rows(table))


def test_added_labels_get_new_ids_and_removed_ones_never_come_back():
    table = random_vectors(30)
    found = LabelIndex(table[:20])
    assert found.add(table[20:]).tolist() == list(range(20, 30))
    assert found.topk(table, 4) == LabelIndex(table).topk(table, 4)
    found.remove([3, 25])
    found.remove(25)
    assert (len(found), found.n_labels) == (28, 30)
    assert not np.isin(found.topk(table, 30).labels, [3, 25]).any()
    assert found.add(table[3:4]).tolist() == [30]
    assert found.topk(table[3:4], 1).labels.tolist() == [[30]]


def test_nothing_left_is_no_answer():
    found = LabelIndex(np.zeros((3, 4)))
    top = found.topk(np.ones((2, 4)), 2)
    assert top == um.TopK([[-1, -1]] * 2, [[-np.inf, -np.inf]] * 2)
    assert found.topk(np.ones((0, 4)), 2).labels.shape == (0, 2)


def test_a_saved_index_answers_the_same_and_goes_on(tmp_path):
    table = random_vectors(9000)  # large enough to be mapped
    found = LabelIndex(table, use="single")
    found.remove([1, 2])
    found.save(tmp_path / "index")
    opened = um.load(tmp_path / "index")
    assert isinstance(opened, LabelIndex)
    assert opened.topk(table[:50], 5) == found.topk(table[:50], 5)
    for one in (found, opened):
        one.remove([0])
        one.add(table[:1])
    assert opened.topk(table[:50], 5) == found.topk(table[:50], 5)
    assert um.load(tmp_path / "index", verify=True).topk(table[:1], 1).labels[0, 0] == 0


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda i: i.topk(np.ones((2, 5)), 1), FeaturesError, "queries have 5 columns.*4"),
        (lambda i: i.topk(np.ones(4), 1), FeaturesError, "queries has shape"),
        (lambda i: i.topk([[1, 2, 3, np.nan]], 1), FeaturesError, "NaN in row 0"),
        (lambda i: i.topk(np.ones((1, 4)), 0), ParameterError, "k=0"),
        (lambda i: i.topk(np.ones((1, 4)), 2.0), ParameterError, r"k=2\.0"),
        (lambda i: i.recall(np.ones((1, 5)), 1), FeaturesError, "5 columns"),
        (lambda i: i.add(np.ones((2, 3))), FeaturesError, "vectors have 3 columns"),
        (lambda i: i.add(np.ones((0, 4))), FeaturesError, "no rows"),
        (lambda i: i.remove([0, 3]), LabelsError, "no label 3: ids go from 0 to 2"),
        (lambda i: i.remove([-1]), LabelsError, "no label -1"),
        (lambda i: i.remove([0.5]), LabelsError, "not label ids"),
        (lambda i: i.remove([[0]]), LabelsError, "not label ids"),
        (lambda _: LabelIndex(np.ones((0, 4))), FeaturesError, "no rows"),
        (lambda _: LabelIndex(np.ones((4, 0))), FeaturesError, "no columns"),
        (lambda _: LabelIndex([[np.inf]]), FeaturesError, "infinity"),
        (lambda _: LabelIndex([["a"]]), FeaturesError, "texts"),
        (lambda _: LabelIndex([[1]], method="fast"), ParameterError, "method='fast'"),
        (lambda _: LabelIndex([[1]], use=3), ParameterError, "use=3"),
        (lambda _: LabelIndex([[1]], n_links=0), ParameterError, "n_links=0"),
        (lambda _: LabelIndex([[1]], n_jobs=0), ParameterError, "n_jobs=0"),
    ],
)
def test_bad_input_gets_advice_and_changes_nothing(call, error, says):
    found = LabelIndex(np.eye(3, 4))
    with pytest.raises(error, match=says):
        call(found)
    assert found.topk(np.eye(3, 4), 1).labels.ravel().tolist() == [0, 1, 2]


def test_sparse_vectors_are_refused():
    from scipy.sparse import csr_matrix

    with pytest.raises(FeaturesError, match="sparse"):
        LabelIndex(csr_matrix(np.eye(3)))


def test_without_the_library_auto_is_exact_and_hnsw_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    monkeypatch.setattr(index, "is_available", lambda: False)
    monkeypatch.setattr(index, "_GRAPH_PAYS", {"single": 0, "batch": 0})
    table = random_vectors(20)
    found = LabelIndex(table, use="single")
    assert found.graph is None
    assert found.recall(table) == 1
    assert found.topk(table, 1).labels.ravel().tolist() == list(range(20))
    with pytest.raises(MissingExtraError, match=r"umpteen\[neural\]"):
        LabelIndex(table, method="hnsw")


def test_blas_gets_its_threads_back_when_the_last_of_overlapping_searches_ends():
    before = blas_threads()
    first, second = ExitStack(), ExitStack()
    first.enter_context(one_thread_each)
    second.enter_context(one_thread_each)
    first.close()
    assert set(blas_threads()) == {1}
    second.close()
    assert blas_threads() == before
