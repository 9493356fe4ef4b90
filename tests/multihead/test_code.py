"""If these fail, labels come back as other labels."""

import math

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from hypothesis import given
from hypothesis import strategies as st

import umpteen as um
from umpteen.errors import LabelsError, LabelsShapeError, ParameterError
from umpteen.multihead import LabelCode
from umpteen.storage import load, save

from .literal import combine, confusion_degree, decompose

any_lengths = st.lists(st.integers(1, 7), min_size=1, max_size=5)


@st.composite
def codes(draw):
    lengths = draw(any_lengths)
    code = LabelCode(draw(st.integers(1, math.prod(lengths))), lengths)
    return code.shuffled(draw(st.integers(0, 9))) if draw(st.booleans()) else code


@given(codes())
def test_all_labels_come_back(code):
    labels = np.arange(code.n_labels)
    digits = code.encode(labels)
    np.testing.assert_array_equal(code.decode(digits), labels)
    assert len(np.unique(digits, axis=0)) == code.n_labels
    assert (digits >= 0).all()
    assert (digits < code.lengths).all()


@given(codes())
def test_tensors_have_the_same_codes_as_arrays(code):
    labels = np.arange(code.n_labels).reshape(1, -1)
    digits = code.encode(torch.from_numpy(labels))
    np.testing.assert_array_equal(digits.numpy(), code.encode(labels))
    np.testing.assert_array_equal(code.decode(digits).numpy(), labels)


@given(any_lengths, st.data())
def test_digits_are_those_of_algorithm_1(lengths, data):
    label = data.draw(st.integers(0, math.prod(lengths) - 1))
    code = LabelCode(math.prod(lengths), lengths)
    assert code.encode(np.array([label]))[0].tolist() == decompose(label, lengths)
    assert combine(decompose(label, lengths), lengths) == label


def test_algorithm_1_as_printed_is_wrong():
    printed = 7 % 4  # line 4, for label 7 and heads of 3 and 4
    assert [printed, 7 - 4 * printed] == [3, -5]
    assert decompose(7, [3, 4]) == [1, 3]


@given(codes())
def test_codes_without_a_label_decode_to_minus_one(code):
    everything = np.stack(np.unravel_index(np.arange(math.prod(code.lengths)), code.lengths), -1)
    labels = code.decode(everything)
    assert sorted(labels[labels >= 0]) == list(range(code.n_labels))
    assert (labels < 0).sum() == math.prod(code.lengths) - code.n_labels


@given(st.integers(1, 10**7), st.integers(1, 5))
def test_balanced_heads_are_as_short_as_can_be(n_labels, n_heads):
    lengths = LabelCode.balanced(n_labels, n_heads).lengths
    assert len(lengths) == n_heads
    assert math.prod(lengths) >= n_labels
    assert max(lengths) - min(lengths) <= 1
    shorter = [*sorted(lengths)[:-1], max(lengths) - 1]
    assert math.prod(shorter) < n_labels


@given(st.integers(1, 10**6), st.integers(1, 4), st.none() | st.floats(1, 50))
def test_descending_heads_descend_and_suffice(n_labels, n_heads, ratio):
    lengths = LabelCode.descending(n_labels, n_heads, ratio).lengths
    assert len(lengths) == n_heads
    assert math.prod(lengths) >= n_labels
    assert lengths == sorted(lengths, reverse=True)


@given(st.lists(st.integers(2, 9), min_size=2, max_size=4))
def test_confusion_of_parallel_heads_is_that_of_their_worst_order(lengths):
    code = LabelCode(2, lengths)
    assert code.confusion_degree(parallel=True) == pytest.approx(confusion_degree(lengths))


def test_the_label_decomposition_principle():
    def degree(lengths, **kind):
        return LabelCode(100, lengths).confusion_degree(**kind)

    assert degree([10, 10], parallel=True) < degree([20, 5], parallel=True)  # equal heads
    assert degree([20, 5]) < degree([10, 10]) < degree([5, 20])  # descending heads
    assert degree([10, 10]) < degree([5, 5, 4])  # few heads


def test_more_codes_than_int64_can_count():
    code = LabelCode(1000, [1000] * 30)
    np.testing.assert_array_equal(code.decode(code.encode(np.arange(1000))), np.arange(1000))


def test_similar_labels_share_groups():
    kinds = np.arange(44) % 2
    code = LabelCode(44, [4, 11]).clustered(np.eye(2)[kinds])
    groups = code.encode(np.arange(44))[:, 0]
    assert np.bincount(groups).tolist() == [11] * 4
    assert all(len(set(kinds[groups == group])) == 1 for group in range(4))


def test_a_code_can_be_saved(tmp_path):
    code = LabelCode(43, [4, 11]).shuffled(3)
    save(code, tmp_path / "code")
    again = load(tmp_path / "code")
    labels = np.arange(43)
    np.testing.assert_array_equal(again.encode(labels), code.encode(labels))
    assert again.lengths == code.lengths


@pytest.mark.parametrize("label", [-1, 10])
def test_labels_out_of_range(label):
    with pytest.raises(LabelsError, match=f"{label}"):
        LabelCode(10, [3, 4]).encode(np.array([0, label]))
    with pytest.raises(LabelsError, match=f"{label}"):
        LabelCode(10, [3, 4]).encode(torch.tensor([0, label]))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: LabelCode(13, [3, 4]), ParameterError, "12 codes, too few for 13"),
        (lambda: LabelCode(0, [3]), ParameterError, "n_labels"),
        (lambda: LabelCode(1, [3, 0]), ParameterError, "length"),
        (lambda: LabelCode(3, [3], np.array([0, 1, 1])), ParameterError, "once"),
        (lambda: LabelCode.balanced(10, 0), ParameterError, "n_heads"),
        (lambda: LabelCode.descending(10, 2, ratio=0.5), ParameterError, "ratio"),
        (lambda: LabelCode(10, [3, 4]).decode(np.array([3, 0])), LabelsError, "digit"),
        (lambda: LabelCode(10, [3, 4]).clustered(np.eye(9)), LabelsShapeError, "9 rows"),
    ],
)
def test_what_cannot_be(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_errors_are_ours():
    with pytest.raises(um.errors.UmpteenError):
        LabelCode(13, [3, 4])
