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
from umpteen.parallel import PerThread
from umpteen.parallel import run as run_tasks
from umpteen.progress import Verbose, progress_bar
from umpteen.siamese.boosted_judge import BoostedJudge
from umpteen.siamese.quadratic_judge import QuadraticJudge
from umpteen.siamese.shortlist import distinct
from umpteen.siamese.tower import FloatArray, IntArray, Tower
from umpteen.validation import as_csr, unit_rows

Judge = QuadraticJudge | BoostedJudge
_BLOCK = 512
_FEW_LABELS, _SHARED_BY, _MANY_LABELS = 100, 20, 2_000
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
        if signs.beside is not None:
            share = np.float32(1 / (1 + self.weight))
            mixed = share * signs.beside.scores + (1 - share) * mixed
        return np.asarray(mixed, np.float32)


@dataclass(frozen=True, eq=False)
class Judgement:
    """Scores by a judge: the chance of each label, times what a hit on it is worth.

    Beside a companion, the geometric mean of the chance and of its score: a judge of few samples
    has seen few rare labels; where both agree, both are more often right. Where the companion
    knows nothing, the judge decides alone.
    """

    judge: Judge
    worth: FloatArray | None  # (n_labels,); None: all the same

    def scores(self, signs: "Signs") -> FloatArray:
        """Of each candidate."""
        chances = self.judge.chances(signs.together())
        if signs.beside is not None:
            both = np.sqrt(chances * np.maximum(signs.beside.scores, _LEAST))
            chances = np.where(signs.beside.is_strange, chances, both)
        return chances if self.worth is None else chances * self.worth[signs.candidates]


@dataclass(frozen=True, eq=False)
class Signs:
    """What speaks for each candidate; all are (n, candidates), without a candidate (-1) 0."""

    candidates: IntArray
    cosines: FloatArray  # (3, n, candidates): own vector, text, centroid; means over towers
    words: FloatArray  # cosine of the features themselves and the label's
    counts: FloatArray  # ln(1 + number of samples); any number without a candidate
    beside: "Beside | None"

    def together(self) -> FloatArray:
        """(n, candidates, signs)."""
        parts = [*self.cosines, self.words, self.counts]
        if self.beside is not None:
            theirs = self.beside.scores
            parts += [theirs, np.log(np.maximum(theirs, 0) + _LEAST)]
        return np.stack(parts, axis=-1).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Beside:
    """What a companion says of candidates."""

    scores: FloatArray
    is_strange: npt.NDArray[np.bool_]  # added after it was trained, or without samples


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
                part = X if len(blocks) == 1 else X[rows]
                theirs = None if beside is None else beside[rows]
                return use(self._signs(part, n_each, theirs, X.shape[0]))

            return run_tasks(answer, blocks, n_jobs=self.n_jobs, done=lambda _: bar.advance())

    def _signs(self, X: csr_matrix, n_each: int, beside: TopK | None, n_asked: int) -> Signs:
        """Of some of `n_asked` samples."""
        units = as_csr(unit_rows(X))
        views = [_View.of(tower, units) for tower in self.towers]
        found = [view.nearest(2 * n_each, n_asked) for view in views]
        if beside is not None:
            found.append(self.known.with_samples(beside.labels))
        if self.beyond_vectors:
            found.append(np.tile(self.known.frequent[:n_each], (X.shape[0], 1)))
            found.append(self.known.nearest(units, n_each))
        candidates = distinct(np.concatenate(found, axis=1))
        cosines = [view.cosines(candidates) for view in views]
        return Signs(
            candidates,
            cosines[0] if len(cosines) == 1 else np.mean(cosines, axis=0),
            self.known.cosines(units, candidates),
            self.known.log_counts[candidates],
            None if beside is None else self._beside(beside, candidates),
        )

    def _beside(self, answer: TopK, candidates: IntArray) -> "Beside":
        """By as many of the companion's answers for any k: scores do not depend on it."""
        labels, scores = answer.labels[:, : self.n_each], answer.scores[:, : self.n_each]
        n_labels = self.companion.n_labels_ if self.companion else 0
        is_strange = (candidates >= n_labels) | (self.known.counts[candidates] == 0)
        return Beside(looked_up(labels, scores, candidates), is_strange)


@dataclass(frozen=True, eq=False)
class _View:
    """Samples as one tower sees them."""

    tower: Tower
    bags: FloatArray
    lifted: FloatArray

    @classmethod
    def of(cls, tower: Tower, X: csr_matrix) -> "_View":
        """Rows have length 1."""
        bags = tower.encoder.bags_of_units(X)
        return cls(tower, bags, tower.encoder.lift(bags))

    def nearest(self, n: int, n_asked: int) -> IntArray:
        return self.tower.nearest(self.bags, self.lifted, n, n_asked)

    def cosines(self, candidates: IntArray) -> FloatArray:
        return self.tower.cosines(self.bags, self.lifted, candidates)


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
    def log_counts(self) -> FloatArray:
        """ln(1 + number of samples)."""
        return np.log1p(self.counts).astype(np.float32)

    @cached_property
    def by_word(self) -> csr_matrix:
        """(features, labels): for each word the labels that have it, unless they are many.

        Words of more than one label in twenty (and 100), or of more than 2,000, tell little.
        """
        by_word = csr_matrix(self.features.T)
        most = min(max(_FEW_LABELS, self.features.shape[0] // _SHARED_BY), _MANY_LABELS)
        rare = by_word.getnnz(axis=1) <= most
        kept = csr_matrix(diags(rare.astype(np.float32)) @ by_word)
        kept.eliminate_zeros()
        return kept

    def with_samples(self, labels: IntArray) -> IntArray:
        """The same, but -1 for those that have none, or none any more."""
        return np.where(self.counts[labels] > 0, labels, np.int32(-1))

    def nearest(self, units: csr_matrix, n: int) -> IntArray:
        """(rows, n): the labels whose words are most alike; -1 where there are no more."""
        by_word, scratch = self.by_word, self._scratch.value
        found: IntArray = nearest_by_words(
            units.indptr, units.indices, units.data, by_word.indptr, by_word.indices,
            by_word.data, *scratch[:3], n,
        )  # fmt: skip
        return found

    def cosines(self, units: csr_matrix, candidates: IntArray) -> FloatArray:
        """Of the words of rows and of candidates."""
        features, scratch = self.features, self._scratch.value
        found: FloatArray = word_products(
            units.indptr, units.indices, units.data, features.indptr, features.indices,
            features.data, scratch[3], candidates,
        )  # fmt: skip
        return found

    @cached_property
    def _scratch(self) -> PerThread[tuple[Any, ...]]:
        n_labels, n_features = self.features.shape
        return PerThread(
            lambda: (
                np.zeros(n_labels, np.float32), np.zeros(n_labels, np.bool_),
                np.zeros(n_labels, np.int32), np.zeros(n_features, np.float32),
            )
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        return Known, (self.features, self.counts)  # the rest is derived again


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
    sums: Any, is_touched: Any, touched: Any, n: int,
) -> npt.NDArray[np.int32]:  # fmt: skip
    """The n labels of the largest inner products above 0, in any order; -1 where there are none.

    `sums`, `is_touched` and `touched` have a place for each label; the first two are zero before
    and after.
    """
    found = np.full((len(indptr) - 1, n), -1, np.int32)
    best = np.empty(n, np.float32)
    for row in range(len(indptr) - 1):
        n_touched = 0
        for entry in range(indptr[row], indptr[row + 1]):
            word = indices[entry]
            for place in range(word_ptr[word], word_ptr[word + 1]):
                label = word_labels[place]
                if not is_touched[label]:
                    is_touched[label], touched[n_touched] = True, label
                    n_touched += 1
                sums[label] += values[entry] * word_values[place]
        best[:] = 0
        least = 0  # of `best`
        for place in range(n_touched):
            label = touched[place]
            if sums[label] > best[least]:
                best[least], found[row, least] = sums[label], label
                least = int(np.argmin(best))
            sums[label], is_touched[label] = 0, False
    return found


@njit(nogil=True, cache=True)
def word_products(
    indptr: Any, indices: Any, values: Any, label_indptr: Any, label_indices: Any,
    label_values: Any, dense: Any, candidates: Any,
) -> npt.NDArray[np.float32]:  # fmt: skip
    """Inner products of sparse rows and the sparse rows of their candidates (n, any); 0 for -1.

    `dense` has a place for each feature, zero before and after.
    """
    found = np.zeros(candidates.shape, np.float32)
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
