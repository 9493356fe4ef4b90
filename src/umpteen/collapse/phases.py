"""Families of sign vectors with small cosines, where the size allows.

In d = 2^m dimensions, take an orthonormal basis of signs (Hadamard's) and flip the signs of its
columns by (-1)^Q(v), with v running over the m-bit words: another orthonormal basis. For two
quadratic forms Q whose difference has rank r, the cosine of vectors of the two bases is 0 or
±2^(-r/2). Full rank for many forms at once is Kerdock's set (m even; the formula is that of
Calderbank, Cameron, Kantor and Seidel, 1997). Far more forms miss full rank by two: Goethals'
(m even). For odd m, Gold's, trace(b x^3), miss it by one, and trace(b x^3 + c x^5) by three.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import hadamard

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

# An irreducible polynomial over two elements for each degree, its bits as a number.
_POLYNOMIALS = (0, 3, 7, 11, 19, 37, 67, 131, 283, 529, 1033, 2053, 4179)
LARGEST_POWER = len(_POLYNOMIALS) - 1


@dataclass(frozen=True)
class Family:
    """As many as `size` unit vectors in 2^`power` dimensions, no cosine beyond `coherence`."""

    power: int
    size: int
    coherence: float
    form: Callable[[int, int], IntArray]  # (power, which) -> the form's value for each word

    def vectors(self, count: int) -> FloatArray:
        """Return the first `count` of them, `(count, 2^power)`."""
        d = 2**self.power
        basis = np.asarray(hadamard(d), np.float32) / np.float32(np.sqrt(d))
        # From the form 1 on: the basis of form 0 holds the constant vector, which no network
        # with non-negative features could tell from a bias.
        forms = range(1, -(-count // d) + 1)
        flipped = [basis * (1 - 2 * self.form(self.power, which)) for which in forms]
        return np.concatenate(flipped)[:count].astype(np.float32)


def family(n_vectors: int, dimension: int) -> Family | None:
    """Return the family with the smallest angles' cosine that fits, or None if there is none.

    >>> family(4000, 256).coherence
    0.0625
    """
    power = min(dimension.bit_length() - 1, LARGEST_POWER)
    return next((each for each in _families(power) if each.size >= n_vectors), None)


def _families(power: int) -> Iterator[Family]:
    d = 2**power
    if power % 2 == 0 and power >= 4:
        yield Family(power, (d // 2 - 1) * d, d**-0.5, kerdock_form)
        yield Family(power, (d * d // 4 - 1) * d, 2 * d**-0.5, goethals_form)
    elif power >= 3:
        yield Family(power, (d - 1) * d, (2 / d) ** 0.5, gold_form)
        if power >= 5:  # below, x^5 is no other form than x^3
            yield Family(power, (d * d - 1) * d, (8 / d) ** 0.5, double_gold_form)


def kerdock_form(power: int, which: int) -> IntArray:
    """Return values 0 or 1 of Kerdock's form for each word of `power` bits, `(2^power,)`."""
    field = power - 1
    units = 1 << np.arange(field)
    squares = _times(which, which, field)
    products = _times(units[:, None], units, field)
    traces = _trace(_times(which, units, field), field)
    polar = np.zeros((power, power), np.int64)
    polar[:field, :field] = _trace(_times(squares, products, field), field) ^ np.outer(
        traces, traces
    )
    polar[:field, field] = traces
    bits = (np.arange(2**power)[:, None] >> np.arange(power)) & 1
    return np.asarray(((bits @ np.triu(polar, 1)) * bits).sum(axis=1) % 2)


def goethals_form(power: int, which: int) -> IntArray:
    """Return Kerdock's forms, then each plus a form of Gold's on all bits but the last."""
    kerdock, gold = which % 2 ** (power - 1), which // 2 ** (power - 1)
    return kerdock_form(power, kerdock) ^ np.tile(gold_form(power - 1, gold), 2)


def gold_form(power: int, which: int) -> IntArray:
    """Return trace(which * x^3) for each element x of the field with 2^power elements."""
    return _trace(_times(which, _odd_power(power, 3), power), power)


def double_gold_form(power: int, which: int) -> IntArray:
    """Return trace(b x^3 + c x^5), with b and c from the lower and the upper bits of `which`."""
    upper = _trace(_times(which >> power, _odd_power(power, 5), power), power)
    return gold_form(power, which % 2**power) ^ upper


def _odd_power(power: int, exponent: int) -> IntArray:
    x = np.arange(2**power)
    raised, square = x, _times(x, x, power)
    for _ in range(exponent // 2):
        raised = _times(raised, square, power)
    return raised


def _times(a: IntArray | int, b: IntArray | int, degree: int) -> IntArray:
    """Product in the field with 2^degree elements, numbers standing for polynomials."""
    left, right = np.broadcast_arrays(np.asarray(a, np.int64), np.asarray(b, np.int64))
    product = np.zeros_like(left)
    for bit in range(degree):
        product ^= np.where((right >> bit) & 1, left << bit, 0)
    for bit in range(2 * degree - 2, degree - 1, -1):
        product ^= np.where((product >> bit) & 1, _POLYNOMIALS[degree] << (bit - degree), 0)
    return product


def _trace(a: IntArray, degree: int) -> IntArray:
    """The sum of a, a^2, a^4, ...: 0 or 1."""
    total, power = np.asarray(a), np.asarray(a)
    for _ in range(degree - 1):
        power = _times(power, power, degree)
        total = total ^ power
    return total
