"""`TopK` is what every user holds in hand: an error here is an error in every method."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_matrix

from umpteen import TopK
from umpteen.base import ExtremeClassifier, classifier
from umpteen.errors import LabelsError, LabelsShapeError, ParameterError

TOP = TopK(labels=[[2, 0], [1, -1]], scores=[[0.9, 0.5], [0.7, -np.inf]])


def test_types_are_the_promised_ones_whatever_was_given():
    assert (TOP.labels.dtype, TOP.scores.dtype) == (np.int32, np.float32)
    assert (len(TOP), TOP.k) == (2, 2)


def test_to_csr_leaves_out_what_was_not_given():
    matrix = TOP.to_csr(n_labels=4)
    assert matrix.has_sorted_indices
    np.testing.assert_array_equal(matrix.toarray(), np.float32([[0.5, 0, 0.9, 0], [0, 0.7, 0, 0]]))


@pytest.mark.parametrize("use", [lambda: TOP.to_csr(2), lambda: TOP.names(["a", "b"])])
def test_labels_beyond_the_known_ones_are_named(use):
    """The names of another data set would otherwise be given to the labels."""
    with pytest.raises(LabelsError, match="label id 2 does not fit 2 labels"):
        use()


def test_names_are_best_first():
    assert TOP.names(["a", "b", "c"]) == [[("c", 0.9), ("a", 0.5)], [("b", 0.7)]]


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=8), st.randoms())
def test_names_whose_scores_look_alike_stand_by_label_id(steps, random):
    """Who compares two lists of answers sees no order that the numbers do not show."""
    scores = np.float32(0.5) + np.array(steps, np.float32) * np.float32(1e-7)
    labels = random.sample(range(50), len(steps))
    order = np.lexsort((labels, -scores))
    top = TopK(np.array([labels])[:, order], scores[np.newaxis, order])
    (pairs,) = top.names(range(50))
    assert pairs == sorted(pairs, key=lambda pair: (-pair[1], pair[0]))
    assert dict(pairs) == {
        label: round(float(score), 6) for label, score in zip(labels, scores, strict=True)
    }


def test_concatenation_undoes_a_split():
    assert TopK.concatenate([TOP[:1], TOP[1:]]) == TOP
    assert TopK.concatenate([TOP[:0], TOP]) == TOP


def test_equality_is_of_labels_and_scores():
    assert TopK(TOP.labels, TOP.scores) == TOP
    assert TopK(TOP.labels, TOP.scores / 2) != TOP
    assert TOP.first(1) != TOP
    assert TOP != "something else"


def test_one_sample_is_chosen_by_its_number():
    assert TOP[1].labels.tolist() == [[1, -1]]
    assert TOP[[1, 0]].labels.tolist() == [[1, -1], [2, 0]]


def test_tables_of_different_shape_are_refused():
    with pytest.raises(LabelsShapeError, match="same shape"):
        TopK(labels=[[1, 2]], scores=[[0.5]])
    with pytest.raises(LabelsShapeError, match="same shape"):
        TopK(labels=[1, 2], scores=[0.5, 0.4])


@pytest.mark.parametrize("labels", [[[2**40]], [[-(2**40)]], [[0.5]], [["red"]]])
def test_what_is_no_label_id_is_refused(labels):
    """2**40 cut to 32 bits is 0: another label, and nobody would notice."""
    with pytest.raises(LabelsError, match="label ids"):
        TopK(labels=labels, scores=[[1.0]])


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_impossible_k_is_refused(k):
    with pytest.raises(ParameterError, match="k=1 or more"):
        TOP.first(k)
    with pytest.raises(ParameterError, match="k=1 or more"):
        TopK.from_csr(TOP.to_csr(3), k)


@given(
    arrays(
        np.float32,
        st.tuples(st.integers(0, 5), st.integers(1, 8)),
        elements=st.sampled_from([-1.0, 0.0, 0.5, 1.0]),
    ),
    st.integers(1, 10),
)
def test_from_csr_ranks_as_by_sorting(table, k):
    top = TopK.from_csr(csr_matrix(table), k)
    assert top.labels.shape == top.scores.shape == (len(table), min(k, table.shape[1]))
    for values, labels, scores in zip(table, top.labels, top.scores, strict=True):
        best = sorted((-value, label) for label, value in enumerate(values) if value != 0)[:k]
        rest = top.k - len(best)
        assert labels.tolist() == [label for _, label in best] + rest * [-1]
        assert scores.tolist() == [-value for value, _ in best] + rest * [-np.inf]


def test_from_csr_of_a_billion_answers_is_as_wide_as_the_scores():
    """A place for each takes all memory."""
    scores = csr_matrix([[0.5, 0.0, 0.9]])
    assert TopK.from_csr(scores, 10**9) == TopK.from_csr(scores, 3)
    assert TopK.from_csr(scores, 10**9).labels.tolist() == [[2, 0, -1]]


def test_answers_are_padded_up_to_the_places_asked_for():
    assert TOP.padded(1) == TOP
    wide = TOP.padded(4)
    assert wide.first(TOP.k) == TOP
    assert (wide.labels[:, TOP.k :] == -1).all()
    assert np.isneginf(wide.scores[:, TOP.k :]).all()
    assert (wide.labels.dtype, wide.scores.dtype) == (np.int32, np.float32)


def test_from_csr_undoes_to_csr():
    assert TopK.from_csr(TOP.to_csr(3), k=2) == TOP


class FromTable(ExtremeClassifier):
    """Row i of `X` is a row of scores; labels with -99 are not offered."""

    most_rows = 0

    def fit(self, X, Y):
        self._check_fit(X, Y)
        return self

    def _topk(self, X, k):
        self.most_rows = max(self.most_rows, X.shape[0])
        table = np.where(X == -99, -np.inf, X)
        order = np.argsort(-table, axis=1, kind="stable")[:, :k]
        scores = np.take_along_axis(table, order, axis=1)
        return TopK(np.where(np.isneginf(scores), -1, order), scores)


NOT_OFFERED = -99
TABLE = np.float32([[3, -2, NOT_OFFERED, 1], [NOT_OFFERED, 2, 1, 5], [NOT_OFFERED] * 4])


@pytest.mark.parametrize("block_scores", [1, 4, 8, 100])
def test_labels_that_are_not_offered_never_come_before_those_that_are(block_scores, monkeypatch):
    """Zero, or the sample's lowest score if that is negative; in any blocks."""
    monkeypatch.setattr(classifier, "_BLOCK_SCORES", block_scores)
    model = FromTable().fit(TABLE, np.eye(3, 4))
    scores = model.score_labels(TABLE, np.ones((3, 4)))
    np.testing.assert_array_equal(scores.toarray(), [[3, -2, -2, 1], [0, 2, 1, 5], [0, 0, 0, 0]])
    assert scores.nnz == 12
    assert model.most_rows * 4 <= max(4, block_scores)


@given(arrays(np.bool_, (3, 4)), st.integers(1, 12))
def test_scores_are_stored_where_labels_were_asked_for(asked, block_scores):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier, "_BLOCK_SCORES", block_scores)
        scores = FromTable().fit(TABLE, np.eye(3, 4)).score_labels(TABLE, asked)
    filled = np.float32([[3, -2, -2, 1], [0, 2, 1, 5], [0, 0, 0, 0]])
    assert (scores.dtype, scores.shape) == (np.float32, (3, 4))
    np.testing.assert_array_equal(scores.indices, np.nonzero(asked)[1])
    np.testing.assert_array_equal(np.diff(scores.indptr), asked.sum(axis=1))
    np.testing.assert_array_equal(scores.data, filled[asked])
