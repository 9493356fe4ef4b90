"""Probabilities by boosted trees, small enough to be stored as a few arrays."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit

from umpteen.kernels.boosting import boost, boosted_margins
from umpteen.storage import Index, Shape, Size, Sizes, storable

_N_BINS, _N_TREES, _RATE = 64, 100, 0.1
_DEEPEST = 16

FloatArray = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@storable
@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """The probability that a candidate is relevant, a sum of symmetric trees.

    >>> rows = np.linspace(0, 1, 2_000, dtype=np.float32)[:, None]
    >>> trees = BoostedTrees.fitted(rows, rows[:, 0] > 0.5)
    >>> trees.log_odds(np.array([[0.1], [0.9]], np.float32)) > 0
    array([False,  True])
    """

    features: Annotated[npt.NDArray[np.int32], Shape("trees", "depth"), Index("evidence")]
    thresholds: Annotated[FloatArray, Shape("trees", "depth")]
    values: Annotated[npt.NDArray[np.float64], Shape("trees", "leaves")]
    base: float
    n_evidence: Annotated[int, Size("evidence")]

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: leaves that its questions do not lead to."""
        if self.features.shape[1] > _DEEPEST:
            yield f"has trees of depth {self.features.shape[1]}; expected at most {_DEEPEST}"
        if self.values.shape[1] != 2 ** self.features.shape[1]:
            yield f"has {self.values.shape[1]} leaves for {self.features.shape[1]} questions"

    @classmethod
    def fitted(
        cls, rows: FloatArray, relevant: npt.NDArray[np.bool_], offsets: Doubles | None = None, *,
        depth: int = 4, stride: int = 1,
    ) -> "BoostedTrees":  # fmt: skip
        """Learn from the evidence `(pairs, features)` for candidates, and which are relevant.

        With `offsets`, the trees learn what has to be added to them: see `log_odds`. Each tree
        learns from every `stride`-th pair.
        """
        inner = np.linspace(0, 1, _N_BINS + 1)[1:-1]
        edges = [np.unique(np.quantile(column, inner, method="inverted_cdf")) for column in rows.T]
        bins = np.stack(
            [np.searchsorted(e, column) for e, column in zip(edges, rows.T, strict=True)], axis=1
        ).astype(np.uint8)
        share = np.clip(relevant.mean(), 1e-6, 1 - 1e-6)
        base = float(np.log(share / (1 - share)))
        if offsets is None:
            offsets = np.zeros(len(rows))
        else:
            base = float(brentq(lambda by: expit(offsets + by).mean() - share, -1e3, 1e3))
        features, cuts, values = boost(
            bins, relevant.astype(np.float64), _N_BINS, _N_TREES, depth, _RATE, base + offsets,
            stride,
        )  # fmt: skip
        ends = np.array([np.append(e, np.full(_N_BINS - len(e), np.inf)) for e in edges])
        return cls(features, ends[features, cuts].astype(np.float32), values, base, rows.shape[1])

    def log_odds(self, rows: FloatArray) -> Doubles:
        """Return the log-odds of candidates, from their evidence `(..., features)`.

        Add the offsets, if the trees were fitted with such.
        """
        flat = np.ascontiguousarray(rows.reshape(-1, rows.shape[-1]))
        found = boosted_margins(flat, self.features, self.thresholds, self.values, self.base)
        return np.asarray(found.reshape(rows.shape[:-1]))
