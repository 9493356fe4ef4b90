"""Answers: candidates from every tower and a companion, scored by all that is known of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.sparse import csr_matrix, diags

from umpteen.base import ExtremeClassifier, TopK
from umpteen.kernels.nearest import merge_nearest
from umpteen.parallel import run as run_tasks
from umpteen.progress import Verbose, progress_bar
from umpteen.siamese.boosted_judge import BoostedJudge
from umpteen.siamese.quadratic_judge import QuadraticJudge
from umpteen.siamese.shortlist import distinct
from umpteen.siamese.tower import FloatArray, IntArray, Tower
from umpteen.validation import unit_rows

Judge = QuadraticJudge | BoostedJudge
_BLOCK = 512
_FEW_LABELS, _SHARED_BY = 100, 20
_LEAST = np.float32(1e-3)  # a companion's score whose logarithm stands for none


@dataclass(frozen=True)
class Mixture:
    """Scores by fixed weights: the paper's `alpha`, and `weight` of towers beside a companion."""

    alpha: float
    weight: float

    def scores(self, signs: "Signs") -> FloatArray:
        """alpha * own vector + (1 - alpha) * mean of text and centroid, and the companion's."""
        own, text, centroid = signs.cosines
        mean = np.float32(0.5) * (text + centroid)
        mixed = np.float32(self.alpha) * own + np.float32(1 - self.alpha) * mean
        if signs.companion is not None:
            share = np.float32(1 / (1 + self.weight))
            mixed = share * signs.companion + (1 - share) * mixed
        return np.asarray(mixed, np.float32)


@dataclass(frozen=True, eq=False)
class Judgement:
    """Scores by a judge: the chance of each label, times what a hit on it is worth."""

    judge: Judge
    worth: FloatArray | None  # (n_labels,); None: all the same

    def scores(self, signs: "Signs") -> FloatArray:
        """Of each candidate."""
        chances = self.judge.chances(signs.together())
        return chances if self.worth is None else chances * self.worth[signs.candidates]


@dataclass(frozen=True, eq=False)
class Signs:
    """What speaks for each candidate; all are (n, candidates), without a candidate (-1) 0."""

    candidates: IntArray
    cosines: FloatArray  # (3, n, candidates): own vector, text, centroid; means over towers
    words: FloatArray  # cosine of the features themselves and the label's
    counts: FloatArray  # ln(1 + number of samples)
    companion: FloatArray | None

    def together(self) -> FloatArray:
        """(n, candidates, signs)."""
        parts = [*self.cosines, self.words, self.counts]
        if self.companion is not None:
            parts += [self.companion, np.log(np.maximum(self.companion, 0) + _LEAST)]
        return np.stack(parts, axis=-1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Answering:
    """How labels are looked for and scored."""

    towers: list[Tower]
    known: "Known"
    n_each: int  # candidates from each search
    beyond_vectors: bool  # frequent labels and those that share words are candidates, too
    companion: ExtremeClassifier | None
    n_jobs: int | None
    verbose: Verbose

    def topk(self, X: csr_matrix, k: int, way: Mixture | Judgement) -> TopK:
        """The k best of all candidates."""

        def best(signs: Signs) -> TopK:
            return TopK(*merge_nearest(signs.candidates, way.scores(signs), k))

        if X.shape[0] == 0:
            return TopK(np.zeros((0, k), np.int32), np.zeros((0, k), np.float32))
        return TopK.concatenate(self._each_block(X, max(self.n_each, k), best))

    def signs(self, X: csr_matrix) -> Iterator[Signs]:
        """Of all candidates, some samples at a time."""
        yield from self._each_block(X, self.n_each, lambda signs: signs)

    def _each_block(self, X: csr_matrix, n_each: int, use: Any) -> list[Any]:
        blocks = range(0, X.shape[0], _BLOCK)
        with progress_bar("Predicting", len(blocks), verbose=self.verbose) as bar:
            beside = None if self.companion is None else self.companion.predict_topk(X, n_each)

            def answer(first: int) -> Any:
                rows = slice(first, first + _BLOCK)
                return use(self._signs(X[rows], n_each, None if beside is None else beside[rows]))

            return run_tasks(answer, blocks, n_jobs=self.n_jobs, done=lambda _: bar.advance())

    def _signs(self, X: csr_matrix, n_each: int, beside: TopK | None) -> Signs:
        views = [_View.of(tower, X) for tower in self.towers]
        found = [view.tower.shortlist(view.bags, view.lifted, n_each) for view in views]
        if beside is not None:
            found.append(beside.labels)
        units = csr_matrix(unit_rows(X))
        if self.beyond_vectors:
            found.append(np.tile(self.known.frequent[:n_each], (X.shape[0], 1)))
            found.append(self.known.words.nearest(units, n_each))
        candidates = distinct(np.concatenate(found, axis=1))
        features = self.known.features
        return Signs(
            candidates,
            np.mean([view.cosines(candidates) for view in views], axis=0),
            word_products(
                units.indptr, units.indices, units.data, features.indptr, features.indices,
                features.data, features.shape[1], candidates,
            ),
            np.log1p(self.known.counts[candidates]).astype(np.float32),
            None if beside is None else looked_up(beside.labels, beside.scores, candidates),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _View:
    """Samples as one tower sees them."""

    tower: Tower
    bags: FloatArray
    lifted: FloatArray

    @classmethod
    def of(cls, tower: Tower, X: csr_matrix) -> "_View":
        bags = tower.encoder.bags(X)
        return cls(tower, bags, tower.encoder.lift(bags))

    def cosines(self, candidates: IntArray) -> FloatArray:
        return self.tower.cosines(self.bags, self.lifted, candidates)


@dataclass(frozen=True, eq=False)
class Postings:
    """For each word, the labels that have it; words of many labels tell little and are left out."""

    labels: csr_matrix  # (features, labels)

    @classmethod
    def of(cls, label_features: csr_matrix) -> "Postings":
        """The words of at most one label in twenty, or of a hundred."""
        by_word = csr_matrix(label_features.T)
        most = max(_FEW_LABELS, label_features.shape[0] // _SHARED_BY)
        rare = by_word.getnnz(axis=1) <= most
        kept = csr_matrix(diags(rare.astype(np.float32)) @ by_word)
        kept.eliminate_zeros()
        return cls(kept)

    def nearest(self, X: csr_matrix, n: int) -> IntArray:
        """(rows, n): the labels whose words are most alike; -1 where there are no more."""
        by_word = self.labels
        found: IntArray = nearest_by_words(
            X.indptr, X.indices, X.data, by_word.indptr, by_word.indices, by_word.data,
            by_word.shape[1], n,
        )  # fmt: skip
        return found


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of labels beside their vectors.

    >>> Known(csr_matrix((3, 5)), np.array([1, 0, 3])).frequent
    array([2, 0], dtype=int32)
    """

    features: csr_matrix
    counts: npt.NDArray[np.int64]  # samples of each

    @cached_property
    def frequent(self) -> IntArray:
        """Labels that have samples, the most frequent first: no vector is near them."""
        best = np.argsort(-self.counts, kind="stable")
        return best[self.counts[best] > 0].astype(np.int32)

    @cached_property
    def words(self) -> Postings:
        """Labels by their words."""
        return Postings.of(self.features)


@njit(nogil=True, cache=True)
def looked_up(labels: Any, scores: Any, candidates: Any) -> npt.NDArray[np.float32]:
    """The scores that candidates (n, any) have in an answer (n, k); 0 where they are not in it."""
    found = np.zeros(candidates.shape, np.float32)
    for row in range(candidates.shape[0]):
        order = np.argsort(labels[row])
        ordered = labels[row][order]
        for place in range(candidates.shape[1]):
            label = candidates[row, place]
            where = np.searchsorted(ordered, label)
            if label >= 0 and where < len(ordered) and ordered[where] == label:
                found[row, place] = scores[row, order[where]]
    return found


@njit(nogil=True, cache=True)
def nearest_by_words(
    indptr: Any, indices: Any, values: Any, word_ptr: Any, word_labels: Any, word_values: Any,
    n_labels: int, n: int,
) -> npt.NDArray[np.int32]:  # fmt: skip
    """The n labels of the largest inner products above 0, in any order; -1 where there are none."""
    found = np.full((len(indptr) - 1, n), -1, np.int32)
    sums = np.empty(n_labels, np.float32)
    last_row, touched = np.full(n_labels, -1, np.int64), np.empty(n_labels, np.int32)
    for row in range(len(indptr) - 1):
        n_touched = 0
        for entry in range(indptr[row], indptr[row + 1]):
            word = indices[entry]
            for place in range(word_ptr[word], word_ptr[word + 1]):
                label = word_labels[place]
                if last_row[label] != row:
                    last_row[label], sums[label], touched[n_touched] = row, 0, label
                    n_touched += 1
                sums[label] += values[entry] * word_values[place]
        best = np.full(n, np.float32(0))
        least = 0  # of `best`
        for place in range(n_touched):
            label = touched[place]
            if sums[label] > best[least]:
                best[least], found[row, least] = sums[label], label
                least = int(np.argmin(best))
    return found


@njit(nogil=True, cache=True)
def word_products(
    indptr: Any, indices: Any, values: Any, label_indptr: Any, label_indices: Any,
    label_values: Any, n_features: int, candidates: Any,
) -> npt.NDArray[np.float32]:  # fmt: skip
    """Inner products of sparse rows and the sparse rows of their candidates (n, any); 0 for -1."""
    found = np.zeros(candidates.shape, np.float32)
    dense = np.zeros(n_features, np.float32)
    for row in range(candidates.shape[0]):
        for entry in range(indptr[row], indptr[row + 1]):
            dense[indices[entry]] = values[entry]
        for place in range(candidates.shape[1]):
            label = candidates[row, place]
            if label >= 0:
                total = np.float32(0)
                for entry in range(label_indptr[label], label_indptr[label + 1]):
                    total += label_values[entry] * dense[label_indices[entry]]
                found[row, place] = total
        for entry in range(indptr[row], indptr[row + 1]):
            dense[indices[entry]] = 0
    return found
