"""Whether a model that learned from corrections is better or worse than the one before.

The tagger's own validation split cannot tell: the final model learned from it. Instead there are

- corrections that are never learned: every tenth, by a hash of the text, so that no copy of it is;
- texts that the operator gave for that (`--validation`), which no model has seen;
- training texts that the model kept, half of them with labels that the corrections concern. Both
  models learned from these, so the score is no estimate of quality; but if it falls, the model
  forgets.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.base import TopK
from umpteen.metrics.hits import find_hits
from umpteen.tagger import Tagger

_K = 5
_MOST_KEPT = 2000  # kept training texts that are looked at
_TOLERANCE = 0.005  # of nDCG@5
_ERRORS = 1.0  # standard errors that a fall has to exceed, so that it is not chance

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Check:
    """The mean nDCG@5 before and after, and the standard error of the difference."""

    n_texts: int
    before: float
    after: float
    error: float

    @classmethod
    def of(cls, before: FloatArray, after: FloatArray) -> "Check":
        """Return what the scores of each text say together."""
        n = len(before)
        error = float(np.std(after - before) / np.sqrt(n)) if n else 0.0
        first, second = (float(np.mean(scores)) if n else 0.0 for scores in (before, after))
        return cls(n, round(first, 6), round(second, 6), round(error, 6))

    @property
    def is_worse(self) -> bool:
        """Whether the score falls by more than chance explains."""
        fall = self.before - self.after
        return fall > _TOLERANCE and fall > _ERRORS * self.error


def compare_on_texts(
    before: Tagger, after: Tagger, texts: list[str], labels: list[list[str]]
) -> Check:
    """Compare two models on texts that neither has learned from; texts without labels say nothing.

    A label that a model does not know is relevant all the same, and missed.
    """
    Y = after.label_names_.with_unknown(labels).matrix(labels)
    scores = [ndcg_of_each(Y, one.predict_topk(texts, _K)) for one in (before, after)]
    return Check.of(*scores)


def compare_on_kept(
    before: Tagger, after: Tagger, concerned: Iterable[str], corrected: list[str]
) -> Check:
    """Compare two models on training texts that the first one kept, but for `corrected` ones."""
    replay, ids = before.replay_, before.label_names_.ids
    labels = np.array([ids[name] for name in concerned if name in ids], np.int64)
    rows = _drawn(replay.Y, labels)
    outdated = set(_keys(csr_matrix(before.vectorizer_.transform(corrected))))
    rows = rows[[key not in outdated for key in _keys(replay.X[rows])]]
    X, Y = replay.X[rows], replay.Y[rows]
    wide = csr_matrix((Y.data, Y.indices, Y.indptr), shape=(len(rows), len(after.label_names_)))
    scores = [ndcg_of_each(wide, one.classifier_.predict_topk(X, _K)) for one in (before, after)]
    return Check.of(*scores)


def ndcg_of_each(Y: csr_matrix, top: TopK) -> FloatArray:
    """Return the nDCG@5 of each text that has labels."""
    hits = find_hits(Y, top, _K)
    discounts = 1 / np.log2(np.arange(2, _K + 2))
    n_relevant = np.diff(Y.indptr)
    gain = hits.found[:, :_K] @ discounts[: hits.found.shape[1]]
    best = np.append(0, np.cumsum(discounts))[np.minimum(n_relevant, _K)]
    return np.asarray((gain / np.maximum(best, 1e-9))[n_relevant > 0])


def _keys(X: csr_matrix) -> list[bytes]:
    """Bytes that are the same for rows that are the same."""
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends]


def _drawn(Y: csr_matrix, concerned: npt.NDArray[np.int64]) -> Any:
    """Rows, half of them at most with labels that are concerned; always the same ones."""
    order = np.random.default_rng(0).permutation(Y.shape[0])
    marks = np.isin(Y.indices, concerned)
    of_row = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    has = np.bincount(of_row[marks], minlength=Y.shape[0]) > 0
    first = order[has[order]][: _MOST_KEPT // 2]
    others = order[~has[order]][: _MOST_KEPT - len(first)]
    return np.sort(np.append(first, others))
