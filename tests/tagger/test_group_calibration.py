"""Probabilities learned from groups must be those of single texts."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from umpteen.base import TopK
from umpteen.data import aggregate, group_randomly
from umpteen.metrics.hits import found_in
from umpteen.tagger.calibration import Calibration
from umpteen.tagger.group_calibration import GroupEvidence, _validation_groups

K, N_LABELS = 20, 400


def answers(n, seed, missed=0.0):
    """Scores with a known chance to be right, score squared; a share of labels is not answered."""
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.random((n, K)).astype(np.float32), axis=1) * 0.95
    labels = np.stack([rng.choice(N_LABELS, K, replace=False) for _ in range(n)])
    right = rng.random((n, K)) < scores**2
    rows = np.nonzero(right)[0]
    Y = csr_matrix((np.ones(right.sum()), (rows, labels[right])), shape=(n, N_LABELS))
    if missed:
        others = csr_matrix(rng.random((n, N_LABELS)) < missed * right.sum() / n / N_LABELS)
        Y = csr_matrix((Y + others) > 0, dtype=np.float32)
    return TopK(labels, scores), csr_matrix(Y, dtype=np.float32)


def error(calibration, seed):
    top, _ = answers(500, seed)
    return float(np.abs(calibration(top).scores - top.scores**2).mean())


@pytest.mark.parametrize("known", ["estimate", "count"])
@pytest.mark.parametrize("size", [4, 10])
def test_groups_give_the_probabilities_of_texts(size, known):
    top, Y = answers(2000, 0, missed=0.3)
    groups = group_randomly(2000, size, random_state=0)
    counts = aggregate(Y, groups, "set" if known == "estimate" else "list")
    calibration, shares = GroupEvidence.of(top, groups, counts, known).explained()
    by_texts = Calibration.learn(top, found_in(Y, top.labels))
    by_groups = Calibration.learn(top, np.asarray(counts[_group_of(groups)].toarray() > 0)[
        np.arange(2000)[:, None], top.labels
    ])  # fmt: skip
    assert error(calibration, 1) < error(by_texts, 1) + 0.03
    assert error(calibration, 1) < error(by_groups, 1) / 2
    hits, missed = np.split(shares, [top.labels.size])
    assert hits.sum() == pytest.approx(found_in(Y, top.labels).sum(), rel=0.1)
    assert missed.sum() == pytest.approx(Y.nnz - found_in(Y, top.labels).sum(), rel=0.5)


def _group_of(groups):
    return groups.T.tocsr().indices


def test_groups_of_one_are_texts():
    top, Y = answers(400, 0)
    groups = group_randomly(400, 1, random_state=0)
    counts = aggregate(Y, groups)
    calibration, _ = GroupEvidence.of(top, groups, counts, "count").explained()
    plain = Calibration.learn(top, found_in(Y, top.labels))
    np.testing.assert_allclose(calibration(top).scores, plain(top).scores, atol=0.02)


def test_soft_hits_of_0_and_1_are_hits():
    top, Y = answers(300, 0)
    hits = found_in(Y, top.labels)
    soft, hard = (Calibration.learn(top, each) for each in (hits.astype(np.float64), hits))
    np.testing.assert_allclose(soft(top).scores, hard(top).scores, atol=1e-3)


def test_any_score_gets_the_probability_that_it_has_among_the_best():
    top, Y = answers(50, 0)
    calibration = Calibration.learn(top, found_in(Y, top.labels))
    rows, columns = np.nonzero(top.labels >= 0)
    found = calibration.of_scores(top.scores[rows, columns].astype(np.float64), rows, top)
    np.testing.assert_allclose(found, calibration(top).scores[rows, columns], atol=1e-6)


def test_a_tenth_of_the_texts_in_whole_groups_and_none_of_few():
    groups = group_randomly(400, 4, random_state=0)
    drawn = _validation_groups(groups, seed=0)
    assert 30 <= groups[drawn].nnz <= 40
    assert not _validation_groups(groups[:19], seed=0).any()
    assert not _validation_groups(group_randomly(49, 1, random_state=0), seed=0).any()
