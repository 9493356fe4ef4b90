"""If these fail, people trust probabilities that are wrong, or set a wrong threshold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from umpteen import TopK, metrics
from umpteen.errors import ParameterError

answers = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=40)


def literal_error(pairs, n_bins):
    """Guo et al. 2017, equation 3, bin by bin."""
    total = 0.0
    for i in range(n_bins):
        low, high = i / n_bins, (i + 1) / n_bins
        inside = [(p, hit) for p, hit in pairs if low <= p < high or (p == 1 and i == n_bins - 1)]
        if inside:
            confidence = sum(p for p, _ in inside) / len(inside)
            accuracy = sum(hit for _, hit in inside) / len(inside)
            total += len(inside) / len(pairs) * abs(accuracy - confidence)
    return total


@given(answers, st.sampled_from([1, 2, 3, 7, 10]))
def test_error_is_the_definition(pairs, n_bins):
    values, hits = [p for p, _ in pairs], [hit for _, hit in pairs]
    error = metrics.expected_calibration_error(values, hits, n_bins)
    assert error == pytest.approx(literal_error(pairs, n_bins))


@given(answers)
def test_bins_share_out_the_answers(pairs):
    values, hits = [p for p, _ in pairs], [hit for _, hit in pairs]
    bins = metrics.reliability(values, hits).bins
    assert [group.low for group in bins] == pytest.approx(np.arange(10) / 10)
    assert sum(group.count for group in bins) == len(pairs)
    assert sum(group.count * group.share_right for group in bins) == pytest.approx(sum(hits))
    assert sum(group.count * group.mean_probability for group in bins) == pytest.approx(sum(values))


def test_probabilities_that_hold_have_no_error():
    rng = np.random.default_rng(0)
    values = rng.random(200_000)
    hits = rng.random(len(values)) < values
    assert metrics.expected_calibration_error(values, hits) < 0.01
    assert metrics.expected_calibration_error(values**3, hits) > 0.2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_edge_belongs_to_the_upper_bin(dtype):
    edges = np.array([0, 0.1, 0.3, 0.7, 0.9, 1], dtype)
    counts = [group.count for group in metrics.reliability(edges, np.ones(6, bool)).bins]
    assert counts == [1, 1, 0, 1, 0, 0, 0, 1, 0, 2]


def test_thresholds_by_hand():
    top = TopK(
        labels=[[0, 1, 2], [1, 0, -1], [2, 2, 0]],
        scores=[[0.9, 0.7, 0.2], [0.7, 0.5, -np.inf], [0.6, 0.6, 0.1]],
    )
    half, most, all_but = metrics.precision_at_thresholds([[0, 2], [1], [2]], top, (0.5, 0.7, 0.95))
    # from 0.5: 0, 1 | 1, 0 | 2, 2 are given; a label that is given twice is right once
    assert (half.precision, half.recall) == (3 / 6, 3 / 4)
    assert half.labels_per_sample == 2
    assert (most.precision, most.recall, most.labels_per_sample) == (2 / 3, 2 / 4, 1)
    assert (all_but.precision, all_but.recall, all_but.labels_per_sample) == (0, 0, 0)


def test_thresholds_take_scores_in_a_matrix():
    scores = csr_array(np.array([[0.9, 0.0, 0.6], [0.2, 0.8, 0.0]]))
    at = metrics.precision_at_thresholds(csr_array(np.eye(2, 3)), scores, [0.5])[0]
    assert (at.precision, at.recall, at.labels_per_sample) == (2 / 3, 1, 1.5)


@pytest.mark.parametrize("wrong", [[1.2, 0.3], [-0.5, 0.1], [np.nan, 0.5], [np.inf, 0.5]])
def test_other_scores_are_refused(wrong):
    with pytest.raises(ParameterError, match="not probabilities"):
        metrics.reliability(wrong, [True, False])
    with pytest.raises(ParameterError, match="not probabilities"):
        metrics.precision_at_thresholds([[0]], TopK([[0, 1]], [wrong]))


def test_rounding_is_forgiven():
    assert metrics.reliability([1 + 1e-7, -1e-9], [True, False]).expected_calibration_error == 0


def test_shapes_must_agree():
    with pytest.raises(ParameterError, match=r"shape \(2,\), hits \(3,\)"):
        metrics.reliability([0.5, 0.5], [True, False, True])
    with pytest.raises(ParameterError, match="n_bins=0"):
        metrics.reliability([0.5], [True], n_bins=0)


def test_nothing_answered():
    empty = metrics.reliability([], [])
    assert empty.expected_calibration_error == 0
    assert {group.count for group in empty.bins} == {0}
    nothing = TopK(np.full((2, 3), -1), np.full((2, 3), -np.inf))
    assert metrics.precision_at_thresholds([[0], []], nothing)[0].precision == 0
