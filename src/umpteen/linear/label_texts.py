"""What the labels' own features add to a score: their cosine to the sample, and more."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags, vstack
from sklearn.preprocessing import normalize

from umpteen import parallel
from umpteen.base import TopK
from umpteen.errors import FeaturesError
from umpteen.kernels.blending import N_EVIDENCE, blend, join_evidence
from umpteen.kernels.nearest import merge_nearest
from umpteen.kernels.topk import frozen_csr, sparse_topk
from umpteen.linear.search import Answer
from umpteen.metrics import ndcg_at_k
from umpteen.metrics.hits import found_in
from umpteen.ranking import QuadraticRanker
from umpteen.splitting import learned_labels
from umpteen.storage import Offsets, Shape, Sizes, Within, storable
from umpteen.validation import Features, check_describes, check_features

WEIGHTS = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5)
_BLOCK = 2048
_SAME = 0.9  # cosine
_FOLDS = 5
_K = 5  # labels that rankings are compared by
_RARE, _FEW_LABELS = 0.003, 100  # share and number of labels below which a word is rare
_FEWEST_RELEVANT = 100  # candidates of the validation split that a ranker is learned from
_N_RANKED = 30  # candidates that tree and label texts offer to a ranker, each

IntArray = npt.NDArray[np.int64]
Limits = npt.NDArray[np.float32]  # the least and the largest evidence of each kind


def _from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    state.setdefault("counts", np.zeros(state["features"].shape[0], np.int64))
    state.update(ranker=None, limits=None, names=None, name_starts=None)


@dataclass(frozen=True, eq=False)
class NameFeatures:
    """Features of the names of labels, a row for each name.

    The rows of label i are `starts[i]` to before `starts[i + 1]`; a label may have no name.
    """

    features: Features
    starts: IntArray


@storable(version=2, upgrades={1: _from_1})
@dataclass(eq=False)
class LabelTexts:
    """Unit rows of label features, and how they count: by a ranker, or by a weight of the cosine.

    `counts` has the number of training samples of each label. `limits` are the least and the
    largest evidence that the ranker learned from, beyond which products of columns mean nothing:
    a text that is no more than a name would make all labels likely. Where a label has several
    names, `names` are their unit rows, those of label i from `name_starts[i]` on; otherwise
    `features` are its name.
    """

    features: Annotated[csr_matrix, Shape("labels", "features")]
    counts: Annotated[IntArray, Shape("labels"), Within(0, 2**62)]
    weight: Annotated[float, Within(0, 1e9)] = 0.0
    n_candidates: Annotated[int, Within(1, 100_000)] = 100
    ranker: QuadraticRanker | None = None
    limits: Annotated[Limits, Shape(2, N_EVIDENCE)] | None = None
    names: Annotated[csr_matrix, Shape("names", "features")] | None = None
    name_starts: Annotated[IntArray, Shape("labels + 1"), Offsets("names")] | None = None

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: a ranker of other evidence."""
        if self.ranker is not None and len(self.ranker.means) != N_EVIDENCE:
            yield f"has a ranker of {len(self.ranker.means)} columns; expected {N_EVIDENCE}"
        if (self.ranker is None) != (self.limits is None):
            yield "has a ranker without limits of its evidence, or limits without a ranker"
        if self.limits is not None and not (self.limits[0] <= self.limits[1]).all():
            yield "has limits of evidence of which the lower one is above the upper one"
        if (self.names is None) != (self.name_starts is None):
            yield "has names of labels, and not whose they are"

    @classmethod
    def of(cls, features: Features, counts: IntArray, names: NameFeatures | None = None) -> Self:
        """Return unit rows of features as given, one per label, and of names."""
        check_describes(features, len(counts))
        texts = cls(_unit(features), counts)
        if names is None:
            return texts
        own = check_features(names.features, n_features=features.shape[1], name="label_names")
        starts = _check_starts(names.starts, len(counts), own.shape[0])
        return replace(texts, names=_unit(own), name_starts=starts)

    @property
    def is_used(self) -> bool:
        """Whether label texts count at all."""
        return self.ranker is not None or self.weight > 0

    @property
    def n_asked(self) -> int:
        """The number of labels that the tree has to find."""
        return self.n_candidates if self.ranker is None else _N_RANKED

    def extended(self, new_counts: IntArray, more: "LabelTexts | None" = None) -> "LabelTexts":
        """Return texts with rows for further labels, empty ones for those without features."""
        features, n_new = self.features, len(new_counts)
        counts = np.concatenate([self.counts, new_counts])
        none = np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(n_new + 1, np.int32)
        new = csr_matrix(none, shape=(n_new, features.shape[1])) if more is None else more.features
        changed = replace(self, features=csr_matrix(vstack([features, new])), counts=counts)
        if self.names is None or self.name_starts is None:
            return changed
        starts = np.append(self.name_starts, self.name_starts[-1] + 1 + np.arange(n_new))
        return replace(changed, names=csr_matrix(vstack([self.names, new])), name_starts=starts)

    def without(self, labels: npt.NDArray[np.int32]) -> "LabelTexts":
        """Return texts with empty rows for some labels, which are then never found."""
        kept = np.ones(self.features.shape[0], np.float32)
        kept[labels] = 0
        changed = replace(self, features=_rows_kept(self.features, kept))
        if self.names is None or self.name_starts is None:
            return changed
        of_names = np.repeat(kept, np.diff(self.name_starts))
        return replace(changed, names=_rows_kept(self.names, of_names))

    @cached_property
    def postings(self) -> csr_matrix:
        """Return `(features, names)`: which names have a feature, if not very many have it.

        They find nothing that rarer words do not find, and cost most of the time.
        """
        postings = csr_matrix((self.features if self.names is None else self.names).T)
        n_labels = np.diff(postings.indptr)
        rare = n_labels <= max(_FEW_LABELS, _RARE * postings.shape[1])
        postings.data *= np.repeat(rare, n_labels)
        postings.eliminate_zeros()
        return postings

    @cached_property
    def _log_counts(self) -> npt.NDArray[np.float32]:
        """Of labels without samples as of those with one: rankers learn from the latter."""
        return np.log1p(np.maximum(self.counts, 1)).astype(np.float32)

    @cached_property
    def _named(self) -> tuple[Any, npt.NDArray[np.int64]]:
        """Names, and where those of each label begin."""
        if self.names is None or self.name_starts is None:
            return frozen_csr(self.features), np.arange(self.features.shape[0] + 1)
        return frozen_csr(self.names), np.asarray(self.name_starts)

    @cached_property
    def _owners(self) -> npt.NDArray[np.int32]:
        """The label of each name, and -1 for no name."""
        _, starts = self._named
        owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        return np.append(owners, -1).astype(np.int32)

    def combine(self, X: csr_matrix, best: Answer, k: int, n_jobs: int | None) -> Answer:
        """Return the `k` best of what the tree found and what the texts find, by both together.

        With a ranker, scores are its probabilities. Otherwise they are (tree + weight * cosine) /
        (1 + weight): a label that only one of the two found has zero from the other, but the cosine
        of the tree's candidates is always computed.
        """
        if not self.is_used or X.shape[0] == 0:
            return best[0][:, :k], best[1][:, :k]
        labels = frozen_csr(self.features)

        def rows(block: slice, samples: Any, near: npt.NDArray[np.int32]) -> Answer:
            if self.ranker is None or self.limits is None:
                return blend(  # type: ignore[no-any-return]
                    samples, labels, best[0][block], best[1][block], near,
                    np.float32(self.weight), k, X.shape[1],
                )  # fmt: skip
            found, evidence = self._join(samples, labels, best, block, near)
            n_best = k if k <= _N_RANKED else found.shape[1]
            evidence = np.clip(evidence, *self.limits)
            ranked = merge_nearest(found, self.ranker.probabilities(evidence), n_best)
            others = best[0][block, _N_RANKED:], best[1][block, _N_RANKED:]
            return _with_others(ranked, others, k)

        blocks = self._blocks(X, rows, n_jobs)
        return np.concatenate([a for a, _ in blocks]), np.concatenate([b for _, b in blocks])

    def evidence(self, X: csr_matrix, best: Answer, n_jobs: int | None) -> Answer:
        """Return the candidates of samples, and what speaks for each (see `join_evidence`)."""
        labels = frozen_csr(self.features)

        def rows(block: slice, samples: Any, near: npt.NDArray[np.int32]) -> Answer:
            return self._join(samples, labels, best, block, near)

        blocks = self._blocks(X, rows, n_jobs)
        return np.concatenate([a for a, _ in blocks]), np.concatenate([b for _, b in blocks])

    def _join(self, samples: Any, labels: Any, best: Answer, block: slice, near: Any) -> Answer:
        names, starts = self._named
        return join_evidence(  # type: ignore[no-any-return]
            samples, labels, names, starts, best[0][block, :_N_RANKED], best[1][block, :_N_RANKED],
            near[:, :_N_RANKED], self._log_counts, self.features.shape[1],
        )  # fmt: skip

    def _blocks(self, X: csr_matrix, rows: Any, n_jobs: int | None) -> list[Answer]:
        postings, unit = frozen_csr(self.postings), csr_matrix(normalize(X))

        def block_at(first: int) -> Answer:
            block = slice(first, first + _BLOCK)
            samples = frozen_csr(unit[block])
            near, _ = sparse_topk(samples, postings, self.postings.shape[1], self.n_asked)
            return rows(block, samples, self._owners[near])  # type: ignore[no-any-return]

        return parallel.run(block_at, range(0, X.shape[0], _BLOCK), n_jobs=n_jobs)

    def cosine(self, x: csr_matrix, label: int) -> float:
        """Return the similarity of one sample and one label."""
        return float((normalize(x) @ self.features[label].T).sum())

    def covered(self, x: csr_matrix, label: int) -> float:
        """Return how much of one of a label's names a sample has at most, in [0, 1]."""
        rows = self.features[label]
        if self.names is not None and self.name_starts is not None:
            rows = self.names[self.name_starts[label] : self.name_starts[label + 1]]
        has = np.isin(rows.indices, x.indices)
        of_row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        return float(np.bincount(of_row, has * rows.data**2, minlength=1).max())


def _check_starts(starts: Any, n_labels: int, n_names: int) -> IntArray:
    found = np.asarray(starts)
    whole = found.shape == (n_labels + 1,) and np.issubdtype(found.dtype, np.integer)
    if not whole or found[0] != 0 or found[-1] != n_names or (np.diff(found) < 0).any():
        raise FeaturesError(
            f"label_names.starts does not divide {n_names:,} names among {n_labels:,} labels: "
            f"expected {n_labels + 1:,} integers that rise from 0 to {n_names:,}"
        )
    return found.astype(np.int64)


def _unit(features: Features) -> csr_matrix:
    return csr_matrix(normalize(csr_matrix(features)), dtype=np.float32)


def _rows_kept(features: csr_matrix, kept: npt.NDArray[np.float32]) -> csr_matrix:
    features = csr_matrix(diags(kept) @ features)
    features.eliminate_zeros()
    return features


def _with_others(ranked: Answer, others: Answer, k: int) -> Answer:
    """What a ranker ranks, then further labels of the tree, whose scores go on from the last one.

    So the first labels are the same for every `k`.
    """
    if k <= _N_RANKED:
        return ranked
    labels, scores = others
    is_new = ~(labels[:, :, None] == ranked[0][:, None, :]).any(axis=2)
    lowest = np.where(np.isfinite(ranked[1]), ranked[1], 1).min(axis=1, keepdims=True)
    more = (lowest * np.clip(scores, 0, 1)).astype(np.float32)
    return merge_nearest(  # type: ignore[no-any-return]
        np.concatenate([ranked[0], np.where(is_new, labels, -1)], axis=1),
        np.concatenate([ranked[1], more], axis=1),
        k,
    )


@dataclass(frozen=True, eq=False)
class ValidatedTexts:
    """Label texts that count as is best on a validation split, and the answers to it."""

    texts: LabelTexts
    answers: TopK


def choose(
    texts: LabelTexts, X: csr_matrix, Y: csr_matrix, split: npt.NDArray[np.bool_], best: Answer,
    k: int, n_jobs: int | None,
) -> ValidatedTexts:  # fmt: skip
    """Choose how label texts count, by the nDCG at 5 on a validation split.

    Tried are weights of the cosine, among them 0, and a ranker. The ranker is evaluated on folds of
    the split that it did not learn from, then learned again from all of it. `best` is what a tree
    finds that has not seen the split.
    """
    expected, unlearned = learned_labels(Y, split)  # others only their texts can find
    samples = csr_matrix(X[split])
    # A sample that repeats the text of its label would teach that texts are never wrong.
    repeats = _repeats(texts, samples, expected)
    expected.data[np.repeat(repeats, np.diff(expected.indptr))] = 0
    expected.eliminate_zeros()
    rest = np.bincount(Y[~split].indices, minlength=Y.shape[1])
    trial = replace(texts, counts=rest)

    def quality(answer: Answer) -> float:
        return float(ndcg_at_k(expected, TopK(*answer), min(_K, k)))

    tried = {
        weight: replace(trial, weight=weight).combine(samples, best, k, n_jobs)
        for weight in WEIGHTS
    }
    weight = max(WEIGHTS, key=lambda weight: quality(tried[weight]))
    ranked = _ranked(trial, samples, expected, unlearned, best, k, n_jobs)
    if ranked is None or quality(ranked[2]) <= quality(tried[weight]):
        return ValidatedTexts(replace(texts, weight=weight), TopK(*tried[weight]))
    ranker, limits, answer = ranked
    return ValidatedTexts(replace(texts, weight=0.0, ranker=ranker, limits=limits), TopK(*answer))


def _repeats(texts: LabelTexts, X: csr_matrix, Y: csr_matrix) -> npt.NDArray[np.bool_]:
    """Which samples have nearly the same features as one of their labels."""
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    cosines = np.asarray(normalize(X)[rows].multiply(texts.features[Y.indices]).sum(axis=1)).ravel()
    return np.bincount(rows, cosines > _SAME, minlength=Y.shape[0]) > 0


def _ranked(
    texts: LabelTexts, X: csr_matrix, Y: csr_matrix, unlearned: npt.NDArray[np.bool_],
    best: Answer, k: int, n_jobs: int | None,
) -> tuple[QuadraticRanker, Limits, Answer] | None:  # fmt: skip
    """A ranker of all samples, its limits, and answers of rankers that do not learn from them."""
    candidates, evidence = texts.evidence(X, best, n_jobs)
    relevant = found_in(Y, candidates)
    learned = (
        Y.getnnz(axis=1)[:, None].astype(bool)
        & (candidates >= 0)
        & ~unlearned[candidates]
        & (texts.counts[candidates] > 0)
    )
    if relevant.sum() < _FEWEST_RELEVANT:
        return None

    def fitted(rows: npt.NDArray[np.bool_]) -> tuple[QuadraticRanker, Limits]:
        used = learned & rows[:, None]
        pairs = evidence[used]
        ranker = QuadraticRanker.fitted(pairs, relevant[used], used.sum(axis=1))
        return ranker, np.stack([pairs.min(axis=0), pairs.max(axis=0)])

    fold = np.arange(len(candidates)) % _FOLDS
    labels = np.empty((len(candidates), k), np.int32)
    scores = np.empty((len(candidates), k), np.float32)
    for rows in (fold == i for i in range(_FOLDS)):
        ranker, limits = fitted(~rows)
        probabilities = ranker.probabilities(np.clip(evidence[rows], *limits))
        labels[rows], scores[rows] = merge_nearest(candidates[rows], probabilities, k)
    return *fitted(fold >= 0), (labels, scores)
