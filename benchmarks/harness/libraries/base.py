"""What a library must be able to do to take part."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

Answers = tuple[np.ndarray, np.ndarray]  # labels and scores, each (samples, k)


class Library(ABC):
    """One library; only `train` and `predict` run against the clock.

    Whatever turns our matrices into what a library likes best, or its answers into arrays, is in
    the untimed calls around those two, to the library's favour.
    """

    def __init__(self, *, threads: int, seed: int) -> None:
        self.threads = threads
        self.seed = seed

    def warm_up(self, **settings: Any) -> None:  # noqa: B027
        """Compile what is compiled on first use."""

    @abstractmethod
    def prepare_training(self, X: csr_matrix, Y: csr_matrix, folder: Path) -> Any:
        """The training data as this library wants it; `folder` is free to write to."""

    @abstractmethod
    def train(self, data: Any, folder: Path, **settings: Any) -> None:
        """Timed."""

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the trained model into the empty `folder`."""

    @abstractmethod
    def load(self, folder: Path, **settings: Any) -> None:
        """Read the model and set it up for prediction with `settings`."""

    def prepare_rows(self, X: csr_matrix) -> Any:
        """The rows to predict as this library wants them."""
        return X

    @abstractmethod
    def predict(self, rows: Any, k: int) -> Any:
        """Timed: the best k labels of each row, in whatever form the library gives them."""

    @abstractmethod
    def to_arrays(self, answers: Any, k: int) -> Answers:
        """What `predict` gave, best first, filled up with label -1 and score -inf."""


def from_pairs(answers: list[list[tuple[int, float]]], k: int) -> Answers:
    """Arrays from a list of (label, score) pairs per sample."""
    labels = np.full((len(answers), k), -1, dtype=np.int32)
    scores = np.full((len(answers), k), -np.inf, dtype=np.float32)
    for row, pairs in enumerate(answers):
        for column, (label, score) in enumerate(pairs[:k]):
            labels[row, column], scores[row, column] = label, score
    return labels, scores


def from_csr(answers: csr_matrix, k: int) -> Answers:
    """Arrays from a sparse matrix of scores whose rows are stored best first."""
    rows = np.repeat(np.arange(answers.shape[0]), np.diff(answers.indptr))
    columns = np.arange(answers.nnz) - answers.indptr[rows]
    kept = columns < k
    labels = np.full((answers.shape[0], k), -1, dtype=np.int32)
    scores = np.full((answers.shape[0], k), -np.inf, dtype=np.float32)
    labels[rows[kept], columns[kept]] = answers.indices[kept]
    scores[rows[kept], columns[kept]] = answers.data[kept]
    return labels, scores
