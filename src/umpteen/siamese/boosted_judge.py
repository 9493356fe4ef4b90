"""How much the signs of a label say together, beside a companion.

A companion's scores are good by themselves, where it has any: what else a sign is worth depends on
them by thresholds more than by products. So boosted trees learn it, from samples held out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from numba import njit

from umpteen.storage import Index, Shape, Sizes, Within, storable

FloatArray = npt.NDArray[np.float32]
_LEAF = -1


@storable
@dataclass(frozen=True, eq=False)
class BoostedJudge:
    """The chance that a label is relevant, by its signs: a sum of small decision trees.

    >>> signs = np.linspace(0, 1, 2_000, dtype=np.float32)[:, None]
    >>> judge = BoostedJudge.learned(signs, signs[:, 0] > 0.5)
    >>> judge.chances(np.array([[[0.1], [0.9]]], np.float32)).round(1)
    array([[0., 1.]], dtype=float32)
    """

    roots: Annotated[npt.NDArray[np.int32], Shape("trees"), Index("nodes")]
    signs: Annotated[npt.NDArray[np.int32], Shape("nodes"), Within(_LEAF, 2**15)]
    thresholds: Annotated[npt.NDArray[np.float64], Shape("nodes")]  # up to this, go left
    left: Annotated[npt.NDArray[np.int32], Shape("nodes"), Within(0, 2**31)]
    right: Annotated[npt.NDArray[np.int32], Shape("nodes"), Within(0, 2**31)]
    values: Annotated[npt.NDArray[np.float64], Shape("nodes")]  # of leaves
    base: float

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: child nodes out of range or out of order."""
        inner = np.flatnonzero(self.signs != _LEAF)
        for children in (self.left[inner], self.right[inner]):
            if (children <= inner).any() or (children >= len(self.signs)).any():
                yield "has children that do not come after their parents"

    @classmethod
    def learned(cls, signs: FloatArray, relevant: npt.NDArray[np.bool_]) -> "BoostedJudge":
        """From `signs` (pairs, signs)."""
        from sklearn.ensemble import HistGradientBoostingClassifier  # slow to import

        model = HistGradientBoostingClassifier(
            max_iter=100, learning_rate=0.08, max_leaf_nodes=15, min_samples_leaf=200,
            early_stopping=False, random_state=0,
        )  # fmt: skip
        model.fit(signs, relevant)
        trees = [predictor.nodes for (predictor,) in model._predictors]
        roots = np.cumsum([0, *map(len, trees[:-1])])
        nodes = np.concatenate(trees)
        shift = np.repeat(roots, [len(tree) for tree in trees])
        leaf = nodes["is_leaf"].astype(bool)
        return cls(
            roots.astype(np.int32),
            np.where(leaf, _LEAF, nodes["feature_idx"]).astype(np.int32),
            nodes["num_threshold"].astype(np.float64),
            (nodes["left"] + shift).astype(np.int32),
            (nodes["right"] + shift).astype(np.int32),
            nodes["value"].astype(np.float64),
            float(model._baseline_prediction[0, 0]),
        )

    def chances(self, signs: FloatArray) -> FloatArray:
        """(n, candidates) of signs (n, candidates, signs)."""
        flat = signs.reshape(-1, signs.shape[-1])
        found = _chances(
            flat, self.roots, self.signs, self.thresholds, self.left, self.right, self.values,
            self.base,
        )  # fmt: skip
        return np.asarray(found.reshape(signs.shape[:-1]), np.float32)


@njit(nogil=True, cache=True)
def _chances(
    rows: Any, roots: Any, signs: Any, thresholds: Any, left: Any, right: Any, values: Any,
    base: float,
) -> Any:  # fmt: skip
    found = np.empty(len(rows), np.float32)
    for row in range(len(rows)):
        total = base
        for node in roots:
            place = node
            while signs[place] != _LEAF:
                goes_left = rows[row, signs[place]] <= thresholds[place]
                place = left[place] if goes_left else right[place]
            total += values[place]
        found[row] = 1.0 / (1.0 + np.exp(-total))
    return found
