"""Made-up dense features of very many classes, which stand in a hidden hierarchy."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

_CHUNK = 2**15  # samples made at a time
_SHRINK = 0.7  # from level to level, how far children are from their parent

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]


class Samples(NamedTuple):
    """Rows of unit length, and a class for each."""

    X: FloatArray
    y: IntArray


def hierarchical(
    n_classes: int,
    n_features: int,
    n_train: int,
    n_others: int,
    *,
    branching: int = 8,
    noise: float = 0.6,
    seed: int = 0,
) -> tuple[Samples, Samples]:
    """Samples to learn from, in which every class occurs, and others of the same frequencies.

    A class is a leaf. Its centre is the sum of a random vector for each node above it, ever
    shorter with each level, so classes are the more alike the more ancestors they share; samples
    lie around it, as far as `noise` says. The vectors' variance falls off as 1 / i over directions
    that no feature stands for alone, as that of a network's features does. One sample is each
    class's own; the others choose theirs by Zipf's law.

    >>> train, others = hierarchical(100, 8, 300, 50)
    >>> train.X.shape, len(np.unique(train.y)), others.X.shape
    ((300, 8), 100, (50, 8))
    """
    random = np.random.default_rng(seed)
    spectrum = _spectrum(n_features)
    turn = np.linalg.qr(random.standard_normal((n_features, n_features)))[0]
    centres = _centres(random, n_classes, branching, spectrum)
    zipf = _zipf(random, n_classes)
    n_free = n_train - n_classes
    own = np.concatenate([np.arange(n_classes), random.choice(n_classes, n_free, p=zipf)])
    train = random.permutation(own)
    frequencies = (1 + n_free * zipf) / n_train
    others = random.choice(n_classes, n_others, p=frequencies)
    made = [
        Samples(_around(random, centres, y, noise * spectrum, turn.astype(np.float32)), y)
        for y in (train, others)
    ]
    return made[0], made[1]


def _spectrum(n_features: int) -> FloatArray:
    """Standard deviations whose squares fall off as 1 / i and add up to 1."""
    variances = 1 / np.arange(1, n_features + 1)
    return np.asarray(np.sqrt(variances / variances.sum()), np.float32)


def _zipf(random: np.random.Generator, n_classes: int) -> npt.NDArray[np.float64]:
    """In random order: neighbours in the hierarchy are not alike in frequency."""
    weights = 1 / (10.0 + np.arange(n_classes))
    return random.permutation(weights / weights.sum())


def _centres(
    random: np.random.Generator, n_classes: int, branching: int, spectrum: FloatArray
) -> FloatArray:
    """(n_classes, n_features): level by level, each node's parent is drawn."""
    sizes = [n_classes]
    while sizes[-1] > branching:
        sizes.append(-(-sizes[-1] // branching))
    nodes = np.zeros((1, len(spectrum)), np.float32)
    for level, size in enumerate(reversed(sizes)):
        parent = random.integers(len(nodes), size=size)
        own = random.standard_normal((size, len(spectrum)), np.float32) * spectrum
        nodes = nodes[parent] + np.float32(_SHRINK**level) * own
    return nodes


def _around(
    random: np.random.Generator, centres: FloatArray, y: IntArray, scales: FloatArray,
    turn: FloatArray,
) -> FloatArray:  # fmt: skip
    X = np.empty((len(y), centres.shape[1]), np.float32)
    for first in range(0, len(y), _CHUNK):
        rows = centres[y[first : first + _CHUNK]]
        rows += random.standard_normal(rows.shape, np.float32) * scales
        rows = rows @ turn
        X[first : first + _CHUNK] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return X
