"""If these fail, models are compared on samples that they know."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from umpteen.splitting import validation_split


@pytest.mark.parametrize("n", [2_000, 60_017])
def test_near_copies_are_on_one_side(n):
    random = np.random.default_rng(0)
    group = np.repeat(np.arange(n), random.integers(1, 6, n))[:n]
    X = csr_matrix(np.eye(100, dtype=np.float32)[group % 100])
    drawn = validation_split(X, X, 3, copies_together=True)
    assert min(5_000, n / 10) - 40 < drawn.sum() <= min(5_000, n / 10)
    boundary = np.flatnonzero(np.diff(drawn.astype(int)))
    assert (group[boundary] != group[boundary + 1]).all()
    assert (drawn != validation_split(X, X, 4, copies_together=True)).any()


def test_rows_that_are_all_alike_are_drawn_in_blocks():
    X = csr_matrix(np.ones((4_000, 1), np.float32))
    drawn = validation_split(X, X, 0, copies_together=True)
    assert drawn.sum() == 400
    assert (np.flatnonzero(np.diff(drawn.astype(int))) % 40 == 39).all()


def test_few_samples_empty_rows_and_the_only_labels_are_not_drawn():
    X = csr_matrix(np.eye(49, dtype=np.float32))
    assert validation_split(X, X, 0) is None
    X = csr_matrix((np.arange(200) % 2)[:, None].astype(np.float32))
    drawn = validation_split(X, csr_matrix(np.ones((200, 1))), 0)
    assert 0 < drawn.sum() <= 20
    assert not drawn[::2].any()
    Y = csr_matrix(drawn[:, None].astype(np.float32))
    assert validation_split(X, Y, 0) is None


def test_images_are_split_too():
    X = np.ones((100, 1, 4, 4), np.float32)
    X[7] = 0
    drawn = validation_split(X, csr_matrix(np.ones((100, 1))), 5, fraction=0.5)
    assert 48 <= drawn.sum() <= 50
    assert not drawn[7]
