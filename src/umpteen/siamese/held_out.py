"""Samples that towers do not learn from: by them, a judge learns what to make of all signs."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from umpteen.metrics.hits import found_in
from umpteen.search import LabelIndex
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
_NEIGHBOURS = 40

BoolArray = npt.NDArray[np.bool_]


def held_out(n_samples: int, seed: int) -> BoolArray:
    """A tenth at the most, in runs of 40 neighbours: what stands together is often alike.

    >>> held_out(4_000, seed=0).sum(), held_out(1_999, seed=0).sum()
    (np.int64(400), np.int64(0))
    """
    if n_samples < LEAST_SAMPLES:
        return np.zeros(n_samples, bool)
    run = np.arange(n_samples) // _NEIGHBOURS
    n_runs = min(_MOST, n_samples // _SHARE) // _NEIGHBOURS
    drawn = np.random.default_rng([seed, 20]).permutation(run[-1] + 1)[:n_runs]
    return np.isin(run, drawn)


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


def completed(tower: Tower, part: Problem, whole: Problem, search: str) -> Tower:
    """With centroids of all samples; labels that only those held out have are known by text."""
    texts = tower.encoder.bags(whole.label_features)
    centroids = centroids_of(tower, whole.X, whole.Y)
    known = np.any(centroids, axis=1, keepdims=True)
    learned = part.Y.getnnz(axis=0)[:, None] > 0
    own = np.where(learned, tower.classifiers.vectors, tower.encoder.lift(texts))
    return replace(
        tower,
        texts=_index(texts, tower, search),
        centroids=_index(np.where(known, centroids, texts), tower, search),
        classifiers=_index(own, tower, search),
    )


def _index(vectors: npt.NDArray[np.float32], tower: Tower, search: str) -> LabelIndex:
    n_jobs = tower.texts.n_jobs
    return LabelIndex(vectors, method=search, n_jobs=n_jobs)  # type: ignore[arg-type]
