"""How label texts count: chosen on a validation split."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from umpteen.base import TopK
from umpteen.kernels.nearest import merge_nearest
from umpteen.linear.label_texts import Labels, LabelTexts
from umpteen.linear.search import Answer
from umpteen.linear.text_ranker import TextRanker
from umpteen.metrics import ndcg_at_k
from umpteen.metrics.hits import found_in
from umpteen.splitting import learned_labels

WEIGHTS = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5)
_SAME = 0.9  # cosine
_K = 5  # labels that rankings are compared by
_FEWEST_RELEVANT = 100  # candidates of the validation split that a ranker is learned from

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ValidatedTexts:
    """Label texts that count as is best on a validation split, and the answers to it."""

    texts: LabelTexts
    answers: TopK


def choose(
    texts: LabelTexts, X: csr_matrix, Y: csr_matrix, split: Mask, best: Answer,
    k: int, n_jobs: int | None, n_folds: int = 5,
) -> ValidatedTexts:  # fmt: skip
    """Choose how label texts count, by the nDCG at 5 on a validation split.

    It tries several weights of the cosine, among them 0, and a ranker. The ranker learns from the
    whole split; its answers to the split come from rankers of the other folds. `best` has the
    labels that a tree without the split finds.
    """
    expected, unlearned = learned_labels(Y, split)  # others only their texts can find
    samples = csr_matrix(X[split])
    # A sample that repeats the text of its label would teach that texts are never wrong.
    repeats = _repeats(texts, samples, expected)
    expected.data[np.repeat(repeats, np.diff(expected.indptr))] = 0
    expected.eliminate_zeros()
    rest = np.bincount(Y[~split].indices, minlength=Y.shape[1])
    trial = replace(texts, counts=rest)
    near = trial.nearest(samples, n_jobs)

    def quality(answer: Answer) -> float:
        return float(ndcg_at_k(expected, TopK(*answer), min(_K, k)))

    tried = {
        weight: replace(trial, weight=weight).combine(samples, best, k, n_jobs, near)
        for weight in WEIGHTS
    }
    weight = max(WEIGHTS, key=lambda weight: quality(tried[weight]))
    candidates, evidence = trial.evidence(samples, best, near, n_jobs)
    is_learned = (rest > 0) & ~unlearned
    learned = expected.getnnz(axis=1)[:, None].astype(bool) & (candidates >= 0)
    ranked = _ranked(
        candidates, evidence, found_in(expected, candidates), learned & is_learned[candidates], k,
        n_folds,
    )  # fmt: skip
    if ranked is None or quality(ranked[1]) <= quality(tried[weight]):
        return ValidatedTexts(replace(texts, weight=weight), TopK(*tried[weight]))
    ranker, answer = ranked
    return ValidatedTexts(replace(texts, weight=0.0, ranker=ranker), TopK(*answer))


def _repeats(texts: LabelTexts, X: csr_matrix, Y: csr_matrix) -> Mask:
    """Which samples have nearly the same features as one of their labels."""
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    cosines = np.asarray(normalize(X)[rows].multiply(texts.features[Y.indices]).sum(axis=1)).ravel()
    return np.bincount(rows, cosines > _SAME, minlength=Y.shape[0]) > 0


def _ranked(
    candidates: Labels,
    evidence: npt.NDArray[np.float32],
    relevant: Mask,
    learned: Mask,
    k: int,
    n_folds: int,
) -> tuple[TextRanker, Answer] | None:
    """A ranker of all samples, and answers of rankers that do not learn from them.

    They learn from the candidates that are `learned`. All arrays are (samples, candidates).
    """
    if relevant.sum() < _FEWEST_RELEVANT:
        return None

    def fitted(rows: Mask, near: TextRanker | None = None) -> TextRanker:
        used = learned & rows[:, None]
        return TextRanker.fitted(evidence[used], relevant[used], used.sum(axis=1), near)

    fold = np.arange(len(candidates)) % n_folds
    whole = fitted(fold >= 0)
    labels = np.empty((len(candidates), k), np.int32)
    scores = np.empty((len(candidates), k), np.float32)
    for rows in (fold == i for i in range(n_folds)):
        probabilities = fitted(~rows, whole).probabilities(evidence[rows])
        labels[rows], scores[rows] = merge_nearest(candidates[rows], probabilities, k)
    return whole, (labels, scores)
