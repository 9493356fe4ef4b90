"""If these fail, a label is called good that is not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from umpteen import TopK, metrics
from umpteen.metrics.per_label import LabelTable

K, N_LABELS = 3, 6
samples = st.lists(
    st.tuples(
        st.lists(st.integers(0, N_LABELS - 1), unique=True, max_size=4),
        st.permutations(range(N_LABELS)),
    ),
    min_size=1,
    max_size=12,
)


def to_arrays(samples):
    Y = np.zeros((len(samples), N_LABELS))
    for row, (relevant, _) in zip(Y, samples, strict=True):
        row[relevant] = 1
    labels = np.array([ranking[:K] for _, ranking in samples])
    return csr_array(Y), TopK(labels, np.zeros(labels.shape))


@given(samples)
def test_numbers_are_the_definition(samples):
    Y, top = to_arrays(samples)
    table = metrics.per_label(Y, top, k=K)
    counted = sorted({label for relevant, _ in samples for label in relevant})
    assert table.labels.tolist() == counted
    for i, label in enumerate(counted):
        relevant = [label in given for given, _ in samples]
        answered = [label in ranking[:K] for _, ranking in samples]
        both = sum(a and b for a, b in zip(relevant, answered, strict=True))
        row = table[i]
        assert row.n_test == sum(relevant)
        assert row.precision == (both / sum(answered) if any(answered) else 0)
        assert row.recall == both / sum(relevant)
        assert row.f1 == pytest.approx(2 * both / (sum(answered) + sum(relevant)))
    assert metrics.macro_f1_at_k(Y, top, K) == pytest.approx(table.f1.mean() if counted else 0)


def test_training_counts_and_names():
    top = TopK([[0], [2]], [[0.9], [0.9]])
    table = metrics.per_label([[0], [2]], top, 1, [[0], [0, 1]], label_names=["a", "b", "c"])
    assert [(row.label, row.n_train) for row in (table[0], table[1])] == [("a", 2), ("c", 0)]


@pytest.fixture
def table():
    f1 = np.array([0.5, 1.0, 0.0, 0.5, 0.0, 1.0])
    n_test = np.array([9, 5, 7, 30, 8, 4])
    return LabelTable(5, np.arange(6), None, n_test, f1, f1, f1)


def test_best_and_worst_need_enough_samples(table):
    assert [row.label for row in table.best(3)] == [1, 3, 0]
    assert [row.label for row in table.worst(3)] == [4, 2, 3]
    assert [row.label for row in table.best(2, at_least=1)] == [1, 5]
    assert table.best(3, at_least=100) == []
