"""If these fail, set metrics differ from scikit-learn's, which users hold them against."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array
from sklearn import metrics as sklearn

from umpteen import metrics
from umpteen.errors import LabelsShapeError

SETS = ["subset_accuracy", "jaccard", "sample_f1", "micro_f1", "macro_f1", "hamming_loss"]

pairs = st.integers(2, 6).flatmap(
    lambda width: st.lists(
        st.tuples(*[st.lists(st.booleans(), min_size=width, max_size=width)] * 2),
        min_size=1,
        max_size=8,
    )
)


def of_sklearn(name, Y, predicted):
    if name == "subset_accuracy":
        return sklearn.accuracy_score(Y, predicted)
    if name == "hamming_loss":
        return sklearn.hamming_loss(Y, predicted)
    if name == "jaccard":
        return sklearn.jaccard_score(Y, predicted, average="samples", zero_division=1)
    if name == "macro_f1":  # only of labels with a relevant sample
        labels = np.flatnonzero(Y.any(axis=0))
        if len(labels) == 0:
            return 0.0
        return sklearn.f1_score(Y, predicted, average="macro", labels=labels)
    average = {"sample_f1": "samples", "micro_f1": "micro"}[name]
    return sklearn.f1_score(Y, predicted, average=average, zero_division=1)


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=50, deadline=None)
@given(pairs)
def test_scikit_learn_agrees(name, rows):
    Y, predicted = (np.array([row[i] for row in rows], dtype=int) for i in (0, 1))
    ours = getattr(metrics, name)(csr_array(Y), csc_array(predicted))
    assert ours == pytest.approx(of_sklearn(name, Y, predicted), abs=1e-12)


@pytest.mark.parametrize("name", SETS)
def test_the_same_set_is_perfect(name):
    labels = [[0, 2], [1], []]
    assert getattr(metrics, name)(labels, labels) == (0 if name == "hamming_loss" else 1)


@pytest.mark.parametrize("name", SETS)
def test_without_samples_all_is_zero(name):
    assert getattr(metrics, name)(csr_array((0, 3)), csr_array((0, 3))) == 0


def test_a_million_labels_stay_sparse():
    labels = [[0, 999_999]] * 1000
    assert metrics.micro_f1(labels, [[0]] * 1000) == pytest.approx(2 / 3)


def test_shapes_must_agree():
    with pytest.raises(LabelsShapeError, match="2 rows but predicted has 1"):
        metrics.jaccard([[0], [1]], [[0]])
    with pytest.raises(LabelsShapeError, match="predicted has 2 columns"):
        metrics.jaccard(csr_array((1, 3)), csr_array((1, 2)))
