"""What negatives are drawn from: a tree over the classes, their frequencies, or both."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, cast

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import clone

from umpteen import parallel
from umpteen.kernels.noise import (
    FrequencyArrays,
    MixtureArrays,
    alias_table,
    draw_visits,
    draw_visits_by_frequency,
    log_prob_mixed_rows,
    log_prob_mixed_table,
)
from umpteen.softmax.noise_tree import NoiseTree
from umpteen.storage import Given, Shape, Within, storable
from umpteen.validation import Features

FloatArray = npt.NDArray[np.float32]
Visits = tuple[npt.NDArray[np.int32], FloatArray]  # labels and log-probabilities, (visits, 1 + n)


@storable
@dataclass(eq=False)
class Noise:
    """p(y|x) = (1 - share) * tree(y|x) + share * frequency(y), exact in every log-probability.

    Without a tree the share is 1. Frequencies are counts plus one, or all equal.
    """

    share: Annotated[float, Within(0, 1.5)]
    frequencies: Annotated[npt.NDArray[np.float64], Shape("labels"), Within(1e-300, 1.5)]
    tree: Annotated[NoiseTree, Given("features", "labels")] | None

    @cached_property
    def _frequency(self) -> FrequencyArrays:
        logs = np.log(self.frequencies).astype(np.float32)
        return FrequencyArrays(logs, *alias_table(self.frequencies))

    @cached_property
    def _mixture(self) -> MixtureArrays:
        """What the kernels of a tree take, together with rows of `reduce`."""
        tree = cast(NoiseTree, self.tree)
        return MixtureArrays(tree.arrays, float(self.share), self._frequency)

    @classmethod
    def of(cls, kind: str | NoiseTree, X: Features, Y: csr_matrix, share: float) -> "Noise":
        """Return "uniform" noise, noise by "frequency", or that of a copy of a tree, fitted."""
        if isinstance(kind, NoiseTree):
            return cls.of_tree(kind, X, Y, share)
        return cls.uniform(Y.shape[1]) if kind == "uniform" else cls.by_frequency(Y)

    @classmethod
    def uniform(cls, n_classes: int) -> "Noise":
        """Return noise that draws every class alike."""
        return cls(1.0, np.full(n_classes, 1 / n_classes), None)

    @classmethod
    def by_frequency(cls, Y: csr_matrix) -> "Noise":
        """Return noise that draws classes as often as they occur in `Y`, plus once each."""
        counts = np.bincount(Y.indices, minlength=Y.shape[1]) + 1.0
        return cls(1.0, counts / counts.sum(), None)

    @classmethod
    def of_tree(cls, tree: NoiseTree, X: Features, Y: csr_matrix, share: float) -> "Noise":
        """Fit a copy of the tree, and draw a `share` of classes by frequency."""
        return cls(share, cls.by_frequency(Y).frequencies, clone(tree).fit(X, Y))

    def reduce(self, X: Features) -> FloatArray:
        """Return what the tree sees of the samples, `(n, dim)`."""
        if self.tree is None:
            return np.zeros((X.shape[0], 1), np.float32)
        return self.tree.reduce(X)

    def log_prob(self, reduced: FloatArray, labels: npt.NDArray[np.int32]) -> FloatArray:
        """Return log p(y|x) of given classes, `(n, m)`."""
        if self.tree is None:
            return np.asarray(self._frequency.logs[labels])
        return np.asarray(log_prob_mixed_rows(self._mixture, reduced, labels))

    def log_prob_table(self, reduced: FloatArray) -> FloatArray:
        """Return log p(y|x) of all classes, `(n, n_classes)`; `(1, n_classes)` without a tree."""
        if self.tree is None:
            return self._frequency.logs[None]
        return np.asarray(log_prob_mixed_table(self._mixture, reduced))

    def visits(
        self,
        reduced: FloatArray,
        Y: csr_matrix,
        chunks: list[npt.NDArray[np.int32]],
        n_negatives: int,
        seed: int,
        n_jobs: int | None,
    ) -> Iterator[Visits]:
        """Yield for each chunk of rows the rows' own labels and what is drawn, ahead of use."""

        def draw(rows: npt.NDArray[np.int32]) -> Visits:
            if self.tree is None:
                return draw_visits_by_frequency(  # type: ignore[no-any-return]
                    self._frequency, rows, Y.indptr, Y.indices, n_negatives, seed
                )
            return draw_visits(  # type: ignore[no-any-return]
                self._mixture, reduced, rows, Y.indptr, Y.indices, n_negatives, seed
            )

        return parallel.run_ahead(draw, chunks, n_jobs=n_jobs)
