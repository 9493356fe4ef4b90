"""Compare a model that learned from corrections with the model before.

The tagger's own validation split cannot be used: the final model learned from it. Instead there are

- corrections that are never learned: one in ten, by a hash of the text, so all copies of it;
- texts that the operator gives (`--validation`), which no model has seen;
- a fifth of the training texts that the model kept. For this comparison, the affected labels are
  trained twice without these texts, with the corrections and without them. The score shows what
  the corrections do to texts like the training texts, which nobody corrected.
"""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.base import TopK
from umpteen.metrics.hits import find_hits
from umpteen.serve.journal import Correction
from umpteen.tagger import Tagger

_K = 5
_ONE_IN, _MOST_KEPT = 5, 2000  # kept training texts that are left out
_FEWEST = 10  # texts that a comparison rests on
_TOLERANCE = 0.005  # of nDCG@5
_ERRORS = 2.0  # standard errors that a fall has to exceed, so that it is not chance

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Check:
    """The mean nDCG@5 before and after, and the standard error of the difference."""

    n_texts: int
    before: float
    after: float
    error: float

    @classmethod
    def of(cls, before: FloatArray, after: FloatArray) -> "Check":
        """Return the means and the standard error of the scores of each text."""
        n = len(before)
        error = float(np.std(after - before, ddof=1) / np.sqrt(n)) if n > 1 else 0.0
        first, second = (float(np.mean(scores)) if n else 0.0 for scores in (before, after))
        return cls(n, round(first, 6), round(second, 6), round(error, 6))

    @property
    def is_worse(self) -> bool:
        """Whether the score falls by more than chance can explain."""
        fall = self.before - self.after
        return self.n_texts >= _FEWEST and fall > max(_TOLERANCE, _ERRORS * self.error)


def compare_on_texts(
    before: Tagger, after: Tagger, texts: list[str], labels: list[list[str]]
) -> Check:
    """Compare two models on texts that neither has learned from; texts without labels are ignored.

    A label that a model does not know is still relevant, and counts as missed.
    """
    Y = after.label_names_.with_unknown(labels).matrix(labels)
    scores = [ndcg_of_each(Y, one.predict_topk(texts, _K)) for one in (before, after)]
    return Check.of(*scores)


def compare_on_kept(tagger: Tagger, new: list[Correction]) -> Check:
    """Compare training with and without corrections, on kept texts that are left out."""
    texts, labels = [one.text for one in new], [one.labels for one in new]
    concerned = sorted({name for one in new for name in (*one.labels, *one.rejected)})
    rows = _left_out(tagger, concerned, texts)
    rest = without_kept(tagger, rows)
    same = [concerned] * len(new)  # are learned again, right or wrong
    without, corrected = copy(rest).partial_fit([""], [[]], [concerned]), copy(rest)
    corrected.partial_fit(texts, labels, same)
    X, Y = tagger.replay_.X[rows], tagger.replay_.Y[rows]
    wide = csr_matrix((Y.data, Y.indices, Y.indptr), (len(rows), len(corrected.label_names_)))
    scores = (
        ndcg_of_each(wide, one.classifier_.predict_topk(X, _K)) for one in (without, corrected)
    )
    return Check.of(*scores)


def without_kept(tagger: Tagger, rows: IntArray) -> Tagger:
    """Return a copy of a tagger without some of its kept samples."""
    replay = tagger.replay_
    rest = np.setdiff1d(np.arange(len(replay)), rows)
    kept_texts = None if replay.texts is None else [replay.texts[row] for row in rest]
    less = copy(tagger)
    less.replay_ = replace(replay, X=replay.X[rest], Y=replay.Y[rest], texts=kept_texts)
    n_labels = len(tagger.label_counts_)
    less.label_counts_ = tagger.label_counts_ - np.bincount(
        replay.Y[rows].indices, minlength=n_labels
    )
    less.n_samples_ = tagger.n_samples_ - len(rows)
    return less


def ndcg_of_each(Y: csr_matrix, top: TopK) -> FloatArray:
    """Return the nDCG@5 of each text that has labels."""
    hits = find_hits(Y, top, _K)
    discounts = 1 / np.log2(np.arange(2, _K + 2))
    n_relevant = np.diff(Y.indptr)
    gain = hits.found[:, :_K] @ discounts[: hits.found.shape[1]]
    best = np.append(0, np.cumsum(discounts))[np.minimum(n_relevant, _K)]
    return np.asarray((gain / np.maximum(best, 1e-9))[n_relevant > 0])


def _left_out(tagger: Tagger, concerned: list[str], corrected: list[str]) -> IntArray:
    """A fifth of the kept samples, half of them with labels that are concerned, if there are.

    None of them is a text that was corrected, as its kept labels are wrong. Always the same ones.
    """
    replay, ids = tagger.replay_, tagger.label_names_.ids
    outdated = set(_keys(csr_matrix(tagger.vectorizer_.transform(corrected))))
    usable = np.array([key not in outdated for key in _keys(replay.X)], bool)
    marks = np.isin(replay.Y.indices, [ids[name] for name in concerned if name in ids])
    of_row = np.repeat(np.arange(len(replay)), np.diff(replay.Y.indptr))
    has = np.bincount(of_row[marks], minlength=len(replay)) > 0
    order = np.random.default_rng(0).permutation(len(replay))
    most = min(len(replay) // _ONE_IN, _MOST_KEPT)
    first, others = order[(has & usable)[order]], order[(~has & usable)[order]]
    half = most // 2
    return np.sort(np.concatenate([first[:half], others, first[half:]])[:most])


def _keys(X: csr_matrix) -> list[bytes]:
    """Bytes that are the same for rows that are the same."""
    ends = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return [X.indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in ends]
