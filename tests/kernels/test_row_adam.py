"""Rows that move as Adam says, each once, whatever the order and the threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umpteen.kernels.row_adam import move_rows

SETTINGS = [np.float32(each) for each in (0.1, 0.001, 0.01, 1e-8)]
N_ROWS, WIDTH = 6, 11


def by_hand(table, first, second, places, values):
    """The same in numpy, for the sums of each row; the bits agree."""
    share, square_share, rate, eps = SETTINGS
    for row in np.unique(places):
        gradient = np.zeros(WIDTH, np.float32)
        for value in values[places == row]:
            gradient += value
        first[row] += share * (gradient - first[row])
        second[row] += square_share * (gradient * gradient - second[row])
        table[row] -= rate * first[row] / (np.sqrt(second[row]) + eps)


def arrays(seed):
    random = np.random.default_rng(seed)
    table, first = random.standard_normal((2, N_ROWS, WIDTH), np.float32)
    return random, [table, first, random.random((N_ROWS, WIDTH), np.float32)]


@given(st.lists(st.integers(0, N_ROWS - 1), min_size=1), st.integers(0, 99), st.data())
def test_rows_move_as_adam_says(places, seed, data):
    """In one range or in two, also where the cut is among equal rows."""
    random, expected = arrays(seed)
    found = [each.copy() for each in expected]
    places = np.array(places)
    values = random.standard_normal((len(places), WIDTH), np.float32)
    order = np.argsort(places, kind="stable")
    cut = data.draw(st.integers(0, len(places)))
    for begin, end in ((cut, len(places)), (0, cut)):
        move_rows(*found, places[order], order, values, begin, end, *SETTINGS)
    by_hand(*expected, places, values)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("eps", [0.0, 1e-8])
def test_a_gradient_of_zero_raises_no_error(eps):
    _, (table, first, second) = arrays(0)
    first[:], second[:] = 0, 0
    row, values = np.array([2]), np.zeros((1, WIDTH), np.float32)
    move_rows(table, first, second, row, row - 2, values, 0, 1, *SETTINGS[:3], np.float32(eps))
    assert np.isnan(table[2]).all() == (eps == 0)
    assert np.isfinite(np.delete(table, 2, axis=0)).all()
