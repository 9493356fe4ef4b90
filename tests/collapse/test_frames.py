"""Fixed frames: the angles that they promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import hadamard

from umpteen.collapse.frames import (
    coherence,
    fixed_frame,
    near_equal_angles,
    random_frame,
    simplex_etf,
    welch_bound,
)
from umpteen.collapse.phases import _families, _times, _trace, family
from umpteen.errors import ParameterError


@given(st.integers(1, 30), st.integers(-1, 10))
def test_a_simplex_has_equal_angles(n_vectors, more):
    dimension = max(n_vectors + more, 1)
    gram = simplex_etf(n_vectors, dimension) @ simplex_etf(n_vectors, dimension).T
    expected = np.full((n_vectors, n_vectors), -1 / max(n_vectors - 1, 1))
    np.fill_diagonal(expected, 1)
    np.testing.assert_allclose(gram, expected, atol=1e-5)


@pytest.mark.parametrize(("n_vectors", "dimension"), [(40, 7), (96, 64), (300, 100), (500, 32)])
def test_near_equal_angles_are_near_the_bound_and_far_from_random(n_vectors, dimension):
    frame = near_equal_angles(n_vectors, dimension)
    np.testing.assert_allclose(np.linalg.norm(frame, axis=1), 1, atol=1e-5)
    largest = coherence(frame)
    assert welch_bound(n_vectors, dimension) - 1e-5 <= largest
    assert largest < 1.6 * welch_bound(n_vectors, dimension)
    assert largest < 0.65 * coherence(random_frame(n_vectors, dimension))


@pytest.mark.parametrize(("n_vectors", "dimension"), [(500, 20), (2000, 70)])
def test_the_same_seed_gives_the_same_frame(n_vectors, dimension):
    first, again = (near_equal_angles(n_vectors, dimension, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (first != near_equal_angles(n_vectors, dimension, seed=4)).any()


@pytest.mark.parametrize("power", [3, 4, 5, 6])
def test_families_keep_their_promise_on_a_sample_of_all_their_bases(power):
    for each in _families(power):
        d = 2**power
        vectors = each.vectors(each.size)
        assert vectors.shape == (each.size, d)
        bases = np.random.default_rng(0).permutation(each.size // d)[:40]
        rows = (bases[:, None] * d + np.arange(d)).ravel()
        assert coherence(vectors[rows]) == pytest.approx(each.coherence, abs=1e-6)


@pytest.mark.parametrize(("n_vectors", "dimension"), [(10**6, 128), (10**6, 256), (16_000, 128)])
def test_a_million_vectors_have_a_family(n_vectors, dimension):
    known = family(n_vectors, dimension)
    assert known.size >= n_vectors
    assert known.coherence <= 0.25
    few = np.random.default_rng(0).choice(known.size // dimension - 1, 12, replace=False) + 1
    signs = [1 - 2 * known.form(known.power, int(which)) for which in few]
    basis = hadamard(dimension).astype(np.float32) / np.float32(np.sqrt(dimension))
    assert coherence(np.concatenate([basis * each for each in signs])) <= known.coherence + 1e-6


def test_kerdock_in_256_dimensions_has_every_cosine_at_most_a_sixteenth():
    frame = near_equal_angles(4000, 256)
    assert coherence(frame) == pytest.approx(1 / 16, abs=1e-6)
    assert welch_bound(4000, 256) > 0.96 / 16


def test_a_family_of_fewer_dimensions_is_turned_so_that_every_feature_counts():
    frame = near_equal_angles(3000, 80)
    assert frame.shape == (3000, 80)
    assert coherence(frame) == pytest.approx(family(3000, 80).coherence, abs=1e-5)
    assert (np.abs(frame).max(axis=0) > 0.01).all()


@given(st.integers(1, 9), st.integers(0, 511), st.integers(0, 511), st.integers(0, 511))
def test_the_finite_field_is_one(degree, a, b, c):
    a, b, c = (np.int64(x % 2**degree) for x in (a, b, c))
    assert _times(a, b, degree) == _times(b, a, degree) < 2**degree
    assert _times(_times(a, b, degree), c, degree) == _times(a, _times(b, c, degree), degree)
    assert _times(a, b ^ c, degree) == _times(a, b, degree) ^ _times(a, c, degree)
    assert (_times(a, b, degree) == 0) == (a == 0 or b == 0)
    assert _trace(a, degree) in (0, 1)
    assert _trace(a ^ b, degree) == _trace(a, degree) ^ _trace(b, degree)


@pytest.mark.parametrize("degree", range(1, 13))
def test_every_polynomial_is_irreducible(degree):
    """Else some element other than 0 would have no inverse."""
    elements = np.arange(1, 2**degree)
    power = elements
    for _ in range(degree):
        power = _times(power, power, degree)
    np.testing.assert_array_equal(power, elements)  # x^(2^n) = x
    few = elements[:: max(len(elements) // 50, 1)]
    assert _times(few[:, None], elements, degree).all()


def test_coherence_looks_at_all_blocks(monkeypatch):
    monkeypatch.setattr("umpteen.collapse.frames._BLOCK", 7)
    frame = random_frame(40, 12)
    cosines = np.abs(frame @ frame.T)
    np.fill_diagonal(cosines, 0)
    assert coherence(frame) == pytest.approx(cosines.max(), abs=1e-6)


def test_blocks_still_move_vectors_apart(monkeypatch):
    monkeypatch.setattr("umpteen.collapse.frames._BLOCK", 64)
    assert coherence(near_equal_angles(300, 20)) < 0.8 * coherence(random_frame(300, 20))


@pytest.mark.parametrize("arguments", [(0, 3), (3, 0), (2.5, 3)])
def test_sizes_must_be_counts(arguments):
    with pytest.raises(ParameterError):
        fixed_frame(*arguments)


@pytest.mark.parametrize(("n_vectors", "dimension"), [(5, 0), (0, 3), (5, -1), (2.5, 3)])
def test_a_bound_of_no_vectors_or_no_dimension_is_refused(n_vectors, dimension):
    with pytest.raises(ParameterError, match="1 or more"):
        welch_bound(n_vectors, dimension)


@pytest.mark.parametrize(("n_vectors", "dimension"), [(4, 2), (6, 3), (16, 8), (7, 5)])
def test_no_row_cancels_another(n_vectors, dimension):
    """Axes and their opposites are farther apart, but a set of two opposite labels has no point."""
    frame = fixed_frame(n_vectors, dimension)
    axes = np.concatenate([np.eye(dimension), -np.eye(dimension)])[:n_vectors]
    assert (frame @ frame.T - 2 * np.eye(n_vectors)).max() > 0  # a positive cosine
    assert (axes @ axes.T - 2 * np.eye(n_vectors)).max() <= 0
    sums = np.linalg.norm(frame[:, None] + frame[None], axis=2)
    assert sums.min() > 0.3
