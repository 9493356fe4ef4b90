"""If these fail, answers are matched to the wrong samples, or the wrong pairs are removed."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from umpteen import TopK, metrics
from umpteen.errors import LabelsError, LabelsShapeError
from umpteen.metrics import hits as hits_module
from umpteen.metrics.hits import find_hits


@pytest.fixture
def top():
    return TopK([[3, 1, 0], [2, 0, 1]], [[0.9, 0.5, 0.1], [0.8, 0.7, 0.6]])


def test_blocks_do_not_change_the_answer(monkeypatch):
    Y = csr_array(random_array((500, 40), density=0.1, rng=1, format="csr"))
    labels = np.random.default_rng(1).integers(-1, 40, (500, 6))
    top = TopK(labels, np.zeros(labels.shape))
    whole = find_hits(Y, top, 6)
    chance = metrics.propensity(Y)
    psp = metrics.psp_at_k(Y, top, (1, 6), chance)
    monkeypatch.setattr(hits_module, "_ROWS_PER_BLOCK", 7)
    assert np.array_equal(find_hits(Y, top, 6).found, whole.found)
    assert np.array_equal(metrics.psp_at_k(Y, top, (1, 6), chance), psp)
    dense = Y.toarray() != 0
    expected = [
        [label >= 0 and dense[i, label] and label not in row[:j] for j, label in enumerate(row)]
        for i, row in enumerate(labels)
    ]
    assert np.array_equal(whole.found, expected)


def test_filtered_pairs_close_ranks(top):
    filtered = metrics.filter_pairs(top, [(0, 3), (1, 0), (1, 3), (0, 99)])
    assert filtered.labels.tolist() == [[1, 0, -1], [2, 1, -1]]
    assert filtered.scores[:, :2] == pytest.approx(np.array([[0.5, 0.1], [0.8, 0.6]]))
    assert np.all(filtered.scores[:, 2] == -np.inf)
    assert top.labels[0, 0] == 3  # the argument stays as it was


def test_pairs_as_matrix_and_no_pairs(top):
    pairs = csr_array(([1.0, 1.0], ([0, 1], [3, 0])), shape=(2, 4))
    assert metrics.filter_pairs(top, pairs) == metrics.filter_pairs(top, np.array([[0, 3], [1, 0]]))
    assert metrics.filter_pairs(top, []) == top


def test_filtering_everything_leaves_nothing(top):
    everything = [(i, label) for i in range(2) for label in range(4)]
    assert np.all(metrics.filter_pairs(top, everything).labels == -1)


@pytest.mark.parametrize(
    ("pairs", "error"),
    [
        ([(2, 0)], LabelsError),
        ([(0, -1)], LabelsError),
        ([(0, 1, 2)], LabelsError),
        ([(0.5, 1)], LabelsError),
        (csr_array((3, 4)), LabelsShapeError),
    ],
)
def test_pairs_that_cannot_be(top, pairs, error):
    with pytest.raises(error, match="pairs"):
        metrics.filter_pairs(top, pairs)


def test_filter_takes_a_topk():
    with pytest.raises(LabelsError, match="from_csr"):
        metrics.filter_pairs(csr_array((2, 3)), [(0, 0)])
