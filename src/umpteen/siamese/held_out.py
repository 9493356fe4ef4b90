"""Samples that towers do not learn from: by them, a judge learns what to make of all signs."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.metrics.hits import found_in
from umpteen.siamese.boosted_judge import BoostedJudge
from umpteen.siamese.label_features import centroids_of
from umpteen.siamese.prediction import Answering, Judge
from umpteen.siamese.quadratic_judge import QuadraticJudge
from umpteen.siamese.tower import Tower
from umpteen.siamese.training import Problem

LEAST_SAMPLES = 2_000  # with fewer, none are held out
LEAST_BESIDE_COMPANION = 20_000  # a companion is good by itself: a judge of few would spoil it
_SHARE = 10  # one sample in so many
_MOST = 4_000
_ALIKE = 0.4  # cosine
_MOST_ALIKE = 40

BoolArray = npt.NDArray[np.bool_]


def held_out(X: csr_matrix, seed: int) -> BoolArray:
    """A tenth of the rows (of length 1) at the most; none of few.

    Rows that follow one another and are alike are held out together, up to 40 of them: near copies
    among the others would make the towers look better than they are.

    >>> rows = csr_matrix(np.eye(50)[np.arange(4_000) // 4 % 50])
    >>> held = held_out(rows, seed=0)
    >>> held.sum(), held.reshape(-1, 4).any(axis=1).sum()
    (np.int64(400), np.int64(100))
    """
    if X.shape[0] < LEAST_SAMPLES:
        return np.zeros(X.shape[0], bool)
    groups = _alike(X)
    order = np.random.default_rng([seed, 20]).permutation(groups[-1] + 1)
    n_rows = np.cumsum(np.bincount(groups)[order])
    return np.isin(groups, order[n_rows <= min(_MOST, X.shape[0] // _SHARE)])


def _alike(X: csr_matrix) -> npt.NDArray[np.int64]:
    """Numbers of groups, of rows in order."""
    cosines = np.asarray(X[:-1].multiply(X[1:]).sum(axis=1)).ravel()
    begins = np.flatnonzero(np.r_[True, cosines < _ALIKE])
    sizes = np.diff(np.r_[begins, X.shape[0]])
    place = np.arange(X.shape[0]) - np.repeat(begins, sizes)
    return np.cumsum(place % _MOST_ALIKE == 0) - 1


def learned_judge(answering: Answering, held: Problem) -> Judge | None:
    """From all candidates of samples that were held out; None if none of them is relevant."""
    signs, relevant, n_candidates = [], [], []
    first = 0
    for block in answering.signs(held.X):
        Y = held.Y[first : first + len(block.candidates)]
        there = block.candidates >= 0
        signs.append(block.together()[there])
        relevant.append(found_in(Y, block.candidates)[there])
        n_candidates.append(there.sum(axis=1))
        first += len(block.candidates)
    known, truth = np.concatenate(signs), np.concatenate(relevant)
    if not truth.any():
        return None
    if answering.companion is None:
        return QuadraticJudge.learned(known, truth, np.concatenate(n_candidates))
    return BoostedJudge.learned(known, truth)


def completed(tower: Tower, part: Problem, whole: Problem, **search: Any) -> Tower:
    """With centroids of all samples; labels that only those held out have are known by text."""
    texts = tower.encoder.bags(whole.label_features)
    learned = part.Y.getnnz(axis=0)[:, None] > 0
    own = np.where(learned, tower.classifiers, tower.encoder.lift(texts))
    return Tower.of(
        tower.encoder, texts, centroids_of(tower.encoder, whole.X, whole.Y), own, **search
    )
