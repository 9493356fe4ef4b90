"""The hidden hierarchy behind made-up data: who is related to whom, and who uses which words."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

Ints: TypeAlias = npt.NDArray[np.int64]

_WORDS_PER_NODE = 8  # three random bits choose one


@dataclass(frozen=True)
class SyntheticHierarchy:
    """Labels by position: `branching` neighbours share a parent, and so on, `depth` times.

    Each label and each ancestor has a few words of its own.
    """

    n_labels: int
    branching: int
    depth: int
    cumulative: npt.NDArray[np.float64]  # share of all labels before each position
    words: npt.NDArray[np.int32]  # (nodes, words per node): labels first, then level by level
    offsets: Ints  # the first node of each level

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        n_labels: int,
        n_features: int,
        exponent: float,
        branching: int,
        depth: int,
    ) -> "SyntheticHierarchy":
        """Draw the tree, and frequencies that follow a power law and ignore the tree."""
        frequency = (1.0 + rng.permutation(n_labels)) ** -exponent
        cumulative = np.concatenate([[0.0], np.cumsum(frequency)])
        sizes = [-(-n_labels // branching**level) for level in range(depth + 1)]
        words = rng.integers(n_features, size=(sum(sizes), _WORDS_PER_NODE), dtype=np.int32)
        offsets = np.cumsum([0, *sizes[:-1]])
        return cls(n_labels, branching, depth, cumulative / cumulative[-1], words, offsets)

    def draw_labels(self, rng: np.random.Generator, size: int) -> Ints:
        """Draw labels as often as their frequency says."""
        return self._at(rng.random(size))

    def draw_relatives(self, rng: np.random.Generator, labels: Ints) -> Ints:
        """Draw for each label another under the same ancestor: mostly a near one, sometimes any."""
        span = self._spans()[1 + _levels(rng.integers(2**16, size=len(labels)), self.depth)]
        first = labels // span * span
        last = (first + span).clip(max=self.n_labels)
        low, high = self.cumulative[first], self.cumulative[last]
        return self._at(low + rng.random(len(labels)) * (high - low))

    def draw_words(self, rng: np.random.Generator, labels: Ints) -> npt.NDArray[np.int32]:
        """Draw for each label a word: its own every other time, else one of its ancestors'."""
        draw = rng.integers(2**16, size=len(labels), dtype=np.uint16)
        level = _levels(draw >> 3, self.depth)
        node = self.offsets[level] + labels // self._spans()[level]
        words: npt.NDArray[np.int32] = np.take(self.words, node * _WORDS_PER_NODE + (draw & 7))
        return words

    def label_features(self, n_features: int) -> csr_matrix:
        """Return all words that a label may use, rarer uses with less weight, of unit length."""
        positions = np.arange(self.n_labels)
        levels = range(self.depth + 1)
        nodes = [self.offsets[level] + positions // self.branching**level for level in levels]
        words = np.hstack([self.words[node] for node in nodes])
        weights = np.repeat(np.float32(0.5) ** np.arange(self.depth + 1), _WORDS_PER_NODE)
        indptr = np.arange(self.n_labels + 1) * words.shape[1]
        values = np.tile(weights.astype(np.float32), self.n_labels)
        matrix = csr_matrix((values, words.ravel(), indptr), shape=(self.n_labels, n_features))
        matrix.sum_duplicates()
        return csr_matrix(normalize(matrix, copy=False))

    def _spans(self) -> Ints:
        """How many labels stand under a node of each level, the last level being all of them."""
        spans = self.branching ** np.arange(self.depth + 2)
        return np.where(spans > self.branching**self.depth, self.n_labels, spans)

    def _at(self, shares: npt.NDArray[np.float64]) -> Ints:
        found = np.searchsorted(self.cumulative, shares, side="right") - 1
        return found.clip(max=self.n_labels - 1)


def _levels(bits: npt.NDArray[np.integer], depth: int) -> Ints:
    """A level of 0 to `depth` from random bits, each level half as likely as the one before."""
    n_ones = [min(depth, (byte ^ (byte + 1)).bit_length() - 1) for byte in range(256)]
    return np.take(np.array(n_ones, np.int64), bits & 255)
