"""If one of these operations is off, every trained weight is."""

import numpy as np
import pytest
from numba import njit

from umpteen.kernels import simd

OPERATIONS = ("spread", "load", "add_scaled", "add", "subtract", "multiply", "divide", "maximum")


@njit
def run(left, right, row, scale, results):
    """Each operation on one row of the two tables; its result is one row of `results`."""
    a, b = simd.load(left, row), simd.load(right, row)
    simd.store(results, 0, simd.spread(scale))
    simd.store(results, 1, a)
    simd.store(results, 2, simd.add_scaled(a, scale, b))
    simd.store(results, 3, simd.add(a, b))
    simd.store(results, 4, simd.subtract(a, b))
    simd.store(results, 5, simd.multiply(a, b))
    simd.store(results, 6, simd.divide(a, b))
    simd.store(results, 7, simd.maximum(a, b))
    return simd.largest(a)


def tables(seed, n_rows=5):
    random = np.random.default_rng(seed)
    shape = (2, n_rows, simd.WIDTH)
    magnitudes = 10.0 ** random.integers(-6, 7, shape)
    return (random.normal(size=shape) * magnitudes).astype(np.float32)


def results_of(left, right, row, scale):
    results = np.full((len(OPERATIONS), simd.WIDTH), np.nan, np.float32)
    largest = run(left, right, row, np.float32(scale), results)
    return dict(zip(OPERATIONS, results, strict=True)), largest


@pytest.mark.parametrize("seed", range(20))
def test_every_operation_equals_numpy_on_that_row(seed):
    left, right = tables(seed)
    row, scale = seed % len(left), np.float32(np.random.default_rng(seed).normal())
    found, largest = results_of(left, right, row, scale)
    a, b = left[row], right[row]
    np.testing.assert_array_equal(found["spread"], np.full(simd.WIDTH, scale))
    np.testing.assert_array_equal(found["load"], a)
    np.testing.assert_array_equal(found["add"], a + b)
    np.testing.assert_array_equal(found["subtract"], a - b)
    np.testing.assert_array_equal(found["multiply"], a * b)
    np.testing.assert_array_equal(found["divide"], a / b)
    np.testing.assert_array_equal(found["maximum"], np.maximum(a, b))
    assert largest == a.max()


@pytest.mark.parametrize("seed", range(20))
def test_add_scaled_rounds_once_or_twice_and_no_more(seed):
    left, right = tables(seed)
    a, b, scale = left[2].astype(float), right[2].astype(float), 0.3
    found = results_of(left, right, 2, scale)[0]["add_scaled"]
    exact = a + np.float64(np.float32(scale)) * b
    assert (np.abs(found - exact) <= 1.2e-7 * (np.abs(a) + np.abs(b))).all()


@pytest.mark.parametrize("place", range(simd.WIDTH))
def test_the_largest_is_found_in_every_lane(place):
    left = np.full((1, simd.WIDTH), -7, np.float32)
    left[0, place] = -3
    assert results_of(left, left, 0, 1)[1] == -3


def test_equal_lanes_and_zeros_of_both_signs_compare_as_equal():
    zeros = np.zeros((1, simd.WIDTH), np.float32)
    found, largest = results_of(-zeros, zeros + 1, 0, 1)
    assert largest == 0
    np.testing.assert_array_equal(found["maximum"], 1)


@njit
def copy_row(source, target, row):
    simd.store(target, row, simd.load(source, row))


def test_a_store_touches_its_own_row_and_no_other():
    source = tables(0)[0]
    target = np.zeros_like(source)
    copy_row(source, target, 3)
    np.testing.assert_array_equal(target[3], source[3])
    assert not np.delete(target, 3, axis=0).any()


def test_rows_count_from_the_beginning_of_a_block():
    """The weights of a node stand in blocks; a block's rows must not be those of its neighbour."""
    blocks = tables(1)
    target = np.zeros_like(blocks)
    copy_row(blocks[1], target[1], 2)
    np.testing.assert_array_equal(target[1, 2], blocks[1, 2])
    assert np.count_nonzero(target.any(axis=2)) == 1


@njit
def numbered_rows(n):
    rows = simd.aligned_rows(n)
    for row in range(n):
        simd.prefetch(rows, row * simd.WIDTH)
        simd.store(rows, row, simd.spread(np.float32(row)))
    return rows


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_each_row_stands_on_one_line_of_the_cache(n):
    """Rows on two lines cost twice the memory traffic."""
    compiled, plain = numbered_rows(n), simd.aligned_rows(n)
    assert compiled.shape == plain.shape == (n, simd.WIDTH)
    assert compiled.ctypes.data % 64 == plain.ctypes.data % 64 == 0
    np.testing.assert_array_equal(compiled, np.repeat(np.arange(n), 16).reshape(n, 16))
