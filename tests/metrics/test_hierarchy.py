"""If these fail, credit for relatives is wrong, and answers lose or gain the wrong labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix

from umpteen import TopK, metrics
from umpteen.errors import LabelsError, LabelsShapeError, ParameterError
from umpteen.metrics import most_specific, with_ancestors

N_LABELS = 9
ANIMALS = [[], [0], [1], [1], [0]]  # 0 animal, 1 dog, 2 poodle, 3 pug, 4 cat


@st.composite
def hierarchies(draw):
    """The parents of each label, without cycles, in an order that ids do not tell."""
    order = draw(st.permutations(range(N_LABELS)))
    parents = [set() for _ in order]
    for place, label in enumerate(order):
        if place:
            parents[label] = draw(st.sets(st.sampled_from(order[:place]), max_size=3))
    return [sorted(each) for each in parents]


scores = st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.5, 0.6, 1.0])
answers = st.lists(st.dictionaries(st.integers(0, N_LABELS - 1), scores, max_size=5), max_size=6)
relevant = st.sets(st.integers(0, N_LABELS - 1), max_size=4)


def to_top(rows, k=5):
    labels = np.full((len(rows), k), -1)
    values = np.full((len(rows), k), -np.inf)
    for i, row in enumerate(rows):
        for place, (label, score) in enumerate(ranked(row)):
            labels[i, place], values[i, place] = label, score
    return TopK(labels, values)


def ranked(row):
    return sorted(row.items(), key=lambda item: (-item[1], item[0]))


def rows_of(top):
    rows = zip(top.labels.tolist(), top.scores.tolist(), strict=True)
    return [[(label, score) for label, score in zip(*row, strict=True) if label >= 0]
            for row in rows]  # fmt: skip


def ancestors(label, parents):
    above = set(parents[label])
    return above.union(*(ancestors(each, parents) for each in above))


def extended(labels, parents):
    return set(labels).union(*(ancestors(label, parents) for label in labels))


def single(score):
    return float(np.float32(score))


@given(hierarchies(), answers, st.data(), st.integers(1, 5))
def test_metrics_are_those_of_the_paper(parents, rows, data, k):
    Y = [data.draw(relevant) for _ in rows]
    pairs = [
        (extended([label for label, _ in ranked(row)[:k]], parents), extended(true, parents))
        for row, true in zip(rows, Y, strict=True)
    ]
    both = sum(len(found & true) for found, true in pairs)
    n_found, n_true = sum(len(found) for found, _ in pairs), sum(len(true) for _, true in pairs)
    precision, recall = both / max(n_found, 1), both / max(n_true, 1)
    f1 = 2 * precision * recall / (precision + recall) if both else 0.0
    indicator = np.zeros((len(rows), N_LABELS))
    for i, true in enumerate(Y):
        indicator[i, list(true)] = 1
    given_as = csr_array(indicator), to_top(rows), k, parents
    assert metrics.hierarchical_precision_at_k(*given_as) == pytest.approx(precision)
    assert metrics.hierarchical_recall_at_k(*given_as) == pytest.approx(recall)
    assert metrics.hierarchical_f1_at_k(*given_as) == pytest.approx(f1)


@given(answers, st.data())
def test_without_a_hierarchy_they_are_micro_averages(rows, data):
    Y = [sorted(data.draw(relevant)) for _ in rows]
    none = csr_matrix((N_LABELS, N_LABELS))
    found = sum(len(row.keys() & set(true)) for row, true in zip(rows, Y, strict=True))
    if Y:
        indicator = np.zeros((len(Y), N_LABELS))
        for i, true in enumerate(Y):
            indicator[i, true] = 1
        recall = metrics.hierarchical_recall_at_k(indicator, to_top(rows), 5, none)
        assert recall == pytest.approx(found / max(sum(map(len, Y)), 1))


@given(hierarchies(), answers, st.sampled_from([0.0, 0.5, 0.9, 1.0, 2.0]))
def test_most_specific_drops_what_a_descendant_says(parents, rows, ratio):
    expected = []
    for row in rows:
        below = {
            label: [
                single(row[other]) for other in row if label in ancestors(other, parents)
            ]
            for label in row
        }  # fmt: skip
        expected.append([
            (label, single(score))
            for label, score in ranked(row)
            if not any(
                ratio == 0 or other >= np.float32(ratio) * np.float32(score)
                for other in below[label]
            )
        ])  # fmt: skip
    assert rows_of(most_specific(to_top(rows), parents, ratio=ratio)) == expected


@given(hierarchies(), answers)
def test_with_ancestors_gives_each_the_best_score_below_it(parents, rows):
    expected = []
    for row in rows:
        best = dict(row)
        for label, score in row.items():
            for above in ancestors(label, parents):
                best[above] = max(best.get(above, -np.inf), score)
        expected.append([(label, single(score)) for label, score in ranked(best)])
    found = with_ancestors(to_top(rows), parents)
    assert rows_of(found) == expected
    assert found.k >= 5


@given(hierarchies(), answers)
def test_adding_and_dropping_ancestors_undo_each_other(parents, rows):
    top = most_specific(to_top(rows), parents, ratio=0)
    again = most_specific(with_ancestors(top, parents), parents, ratio=0)
    assert [sorted(row) for row in rows_of(again)] == [sorted(row) for row in rows_of(top)]


def test_an_improbable_descendant_drops_nothing_by_default():
    top = TopK([[0, 1, 2, 4]], [[0.9, 0.8, 0.05, 0.3]])
    assert rows_of(most_specific(top, ANIMALS))[0][0][0] == 1
    assert 0 not in most_specific(top, ANIMALS).labels
    assert 1 in most_specific(top, ANIMALS).labels


def test_scores_below_zero_are_compared_only_if_asked():
    top = TopK([[0, 1]], [[-1.0, -2.0]])
    assert most_specific(top, ANIMALS, ratio=0).labels.tolist() == [[1, -1]]
    with pytest.raises(ParameterError, match="ratio=0"):
        most_specific(top, ANIMALS)
    with pytest.raises(ParameterError, match="ratio"):
        most_specific(top, ANIMALS, ratio=-1)


def test_a_label_that_is_answered_twice_counts_once():
    top = TopK([[2, 2]], [[0.5, 0.4]])
    found = with_ancestors(top, ANIMALS)
    assert rows_of(found) == [[(0, 0.5), (1, 0.5), (2, 0.5)]]
    assert metrics.hierarchical_precision_at_k([[3]], top, 2, ANIMALS) == pytest.approx(2 / 3)


def test_more_rows_than_a_block_get_the_same_answers(monkeypatch):
    rng = np.random.default_rng(0)
    rows = [dict(zip(rng.permutation(5)[:3].tolist(), [0.9, 0.5, 0.1], strict=True))
            for _ in range(20)]  # fmt: skip
    top, Y = to_top(rows), rng.integers(5, size=20)
    before = (
        most_specific(top, ANIMALS),
        with_ancestors(top, ANIMALS),
        metrics.hierarchical_f1_at_k(Y, top, 3, ANIMALS),
    )
    monkeypatch.setattr("umpteen.metrics.relatives._ROWS_PER_BLOCK", 3)
    monkeypatch.setattr("umpteen.metrics.hierarchy._ROWS_PER_BLOCK", 3)
    assert most_specific(top, ANIMALS) == before[0]
    assert with_ancestors(top, ANIMALS) == before[1]
    assert metrics.hierarchical_f1_at_k(Y, top, 3, ANIMALS) == before[2]


@pytest.mark.parametrize("parents", [[[1], [0]], [[0], []], [[1], [2], [0]]])
def test_a_cycle_is_refused(parents):
    top = TopK([[0]], [[0.5]])
    for use in (
        lambda: most_specific(top, parents),
        lambda: with_ancestors(top, parents),
        lambda: metrics.hierarchical_recall_at_k([[0]], top, 1, parents),
    ):
        with pytest.raises(LabelsError, match="cycle"):
            use()


def test_what_does_not_fit_is_refused():
    top = TopK([[4]], [[0.5]])
    with pytest.raises(LabelsShapeError, match="label id 4"):
        with_ancestors(top, [[], [0]])
    with pytest.raises(LabelsShapeError, match="row and a column"):
        with_ancestors(top, np.zeros((3, 4)))
    with pytest.raises(LabelsShapeError, match="2 labels"):
        metrics.hierarchical_f1_at_k([[0]], top, 1, [[], [0]])
    with pytest.raises(LabelsShapeError, match="5 labels"):
        metrics.hierarchical_f1_at_k(np.ones((1, 3)), TopK([[0]], [[1.0]]), 1, ANIMALS)
    with pytest.raises(LabelsError, match="TopK"):
        most_specific(csr_matrix([[1.0]]), [[]])


def test_a_long_chain_is_answered():
    n = 300
    parents = [[], *([i] for i in range(n - 1))]
    top = with_ancestors(TopK([[n - 1]], [[0.5]]), parents)
    assert top.labels[0].tolist() == list(range(n))
    assert metrics.hierarchical_precision_at_k([[n - 2]], top, n, parents) == (n - 1) / n


def test_a_hierarchy_of_any_depth_takes_time_by_its_links():
    n = 100_000
    links = np.ones(n - 1), (np.arange(1, n), np.arange(n - 1))
    chain = csr_matrix(links, shape=(n, n))
    top = to_top([{n - 1: 0.9, 5: 0.1}], k=2)
    assert (with_ancestors(top, chain).scores == np.float32(0.9)).sum() == n
    assert most_specific(top, chain).labels.tolist() == [[n - 1, -1]]
    assert metrics.hierarchical_recall_at_k([[n - 2]], top, 1, chain) == 1


def test_nothing_stays_nothing():
    empty = TopK(np.empty((0, 3), np.int32), np.empty((0, 3)))
    assert with_ancestors(empty, ANIMALS) == empty
    assert most_specific(empty, ANIMALS) == empty
    none = TopK([[-1, -1]], [[-np.inf, -np.inf]])
    assert with_ancestors(none, ANIMALS) == none
    assert metrics.hierarchical_f1_at_k([[]], none, 1, ANIMALS) == 0
