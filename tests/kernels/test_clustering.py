"""If a split is uneven or loses rows, labels vanish from the tree or leaves grow too large."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from umpteen.kernels.clustering import bisect
from umpteen.kernels.topk import frozen_csr

MAX_ROUNDS = 20


def random_rows(n_rows, n_features=40, seed=0, density=0.15):
    random = np.random.default_rng(seed)
    table = random.random((n_rows, n_features)) * (random.random((n_rows, n_features)) < density)
    table[np.arange(n_rows), random.integers(n_features, size=n_rows)] += 0.1  # none is empty
    return normalize(csr_matrix(table.astype(np.float32)))


def split(matrix, rows, left_size, seed=0, max_rounds=MAX_ROUNDS):
    """The rows of either side; what must hold for every split is checked on the way."""
    scratch = np.zeros(matrix.shape[1], np.float32)
    order = rows.copy()
    bisect(
        *frozen_csr(matrix), order, left_size, max_rounds, seed, scratch,
    )  # fmt: skip
    assert not scratch.any(), "the next split would start from this one's centres"
    assert sorted(order) == sorted(rows)
    return order[:left_size], order[left_size:]


def cohesion(matrix, *parts):
    """What spherical k-means with fixed sizes maximises: |sum of rows|^2 / size, over parts."""
    table = matrix.toarray().astype(np.float64)
    return sum((table[part].sum(axis=0) ** 2).sum() / len(part) for part in parts)


@given(st.data(), st.integers(2, 60), st.integers(0, 2**31 - 1), st.integers(1, 6))
def test_no_row_is_lost_and_the_scratch_is_clean_again(data, n, seed, max_rounds):
    matrix = random_rows(70, seed=n)
    rows = np.random.default_rng(seed).choice(70, n, replace=False).astype(np.int32)
    left_size = data.draw(st.integers(1, n - 1))
    left, right = split(matrix, rows, left_size, seed, max_rounds)
    assert (len(left), len(right)) == (left_size, n - left_size)


@pytest.mark.parametrize("seed", range(30))
def test_two_clear_groups_are_told_apart(seed):
    random = np.random.default_rng(seed)
    groups = random.permutation(np.repeat([0, 1], [30, 20]))
    table = np.where(random.random((50, 40)) < 0.3, random.random((50, 40)), 0)
    table[groups == 0, 20:] = 0
    table[groups == 1, :20] = 0
    table[groups == 0, 0] = table[groups == 1, 20] = 1  # what the group has in common
    matrix = normalize(csr_matrix(table.astype(np.float32)))
    left, right = split(matrix, np.arange(50, dtype=np.int32), 30, seed)
    purity = [max(np.mean(groups[part] == 0), np.mean(groups[part] == 1)) for part in (left, right)]
    # the first 30 take the larger group, or the smaller one and a few others
    assert purity in ([1, 1], [2 / 3, 1])


@pytest.mark.parametrize("seed", range(10))
def test_a_split_holds_together_better_than_chance(seed):
    matrix, random = random_rows(80, seed=seed), np.random.default_rng(seed)
    rows = np.arange(80, dtype=np.int32)
    ours = cohesion(matrix, *split(matrix, rows, 40, seed))
    chance = [cohesion(matrix, *np.split(random.permutation(rows), 2)) for _ in range(50)]
    assert ours > max(chance)


@pytest.mark.parametrize("seed", range(10))
def test_more_rounds_do_not_make_a_split_worse(seed):
    matrix, rows = random_rows(80, seed=seed), np.arange(80, dtype=np.int32)
    first, last = (cohesion(matrix, *split(matrix, rows, 40, seed, m)) for m in (1, MAX_ROUNDS))
    assert last >= first - 1e-4


def test_identical_rows_are_cut_to_size_in_their_order():
    matrix = csr_matrix(np.ones((9, 3), np.float32))
    left, right = split(matrix, np.arange(9, dtype=np.int32), 4)
    assert left.tolist() == [0, 1, 2, 3]
    assert right.tolist() == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("seed", range(4))
def test_two_rows_are_parted(seed):
    left, right = split(random_rows(5), np.array([4, 2], np.int32), 1, seed)
    assert sorted([*left, *right]) == [2, 4]


def test_the_same_seed_gives_the_same_split():
    matrix, rows = random_rows(60), np.arange(60, dtype=np.int32)
    first, again = (np.concatenate(split(matrix, rows, 25, seed=9)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
