"""If these fail, classifiers judge samples that they learned from, and agree with themselves."""

from collections import Counter

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack, identity

import umpteen as um
from umpteen.aggregated.problem import Problem
from umpteen.aggregated.rounds import agreement, hand_out_anew, score_folds

from . import literal


class Spy(um.NearestCentroid):
    """Notes which samples it learned from and which it was asked about.

    The last features of a sample are its name.
    """

    notes: list = []  # noqa: RUF012 (shared by clones on purpose)
    n_samples = 0

    def fit(self, X, Y):
        self.learned = self.names(X)
        return super().fit(X, Y)

    def score_labels(self, X, candidates):
        self.notes.append((self.learned, self.names(X)))
        return super().score_labels(X, candidates)

    def predict_topk(self, X, k=5):
        self.notes.append((self.learned, self.names(X)))
        return super().predict_topk(X, k)

    def names(self, X):
        return csr_matrix(X)[:, -self.n_samples :].indices.tolist()


@pytest.fixture
def spy(monkeypatch):
    monkeypatch.setattr(Spy, "notes", [])
    monkeypatch.setattr(Spy, "n_samples", 40)
    return Spy()


def named(small):
    """The problem, with samples that carry their names."""
    X, groups, counts = small.sparse
    return Problem.of(hstack([X, 0.01 * identity(X.shape[0])]), groups, counts)


def random_assignment(problem, seed=0):
    given = problem.candidates.copy()
    given.data = (np.random.default_rng(seed).random(given.nnz) < 0.5).astype(np.float32)
    given.eliminate_zeros()
    given.data[:] = 1
    return given


def folds_of(problem, n_folds, seed=0):
    return np.random.default_rng(seed).permutation(problem.groups.shape[0]) % n_folds


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("n_folds", [2, 3, 8])
def test_samples_are_judged_by_who_never_saw_their_groups(overlap, n_folds, spy):
    for seed in range(5):
        small = literal.random_problem(seed, overlap=overlap)
        problem = named(small)
        spy.notes.clear()
        score_folds(problem, random_assignment(problem), spy, folds_of(problem, n_folds, seed))
        judged_with = small.groups[small.groups.argmax(axis=0)]  # the first group of each
        together = small.groups.T.astype(int) @ small.groups.astype(int) > 0
        asked = [name for _, names in spy.notes for name in names]
        assert len(spy.notes) >= 2
        assert len(asked) == 2 * len(set(asked))  # once for scores, once for answers
        for learned, judged in spy.notes:
            assert len(learned) == len(set(learned))
            assert not judged_with[np.ix_(judged, learned)].any()
            assert overlap or not together[np.ix_(judged, learned)].any()
        if not overlap:
            assert set(asked) == set(range(40))


def judged_one_by_one(problem, given, folds):
    """Each sample on its own: its fold is that of its first group."""
    groups = problem.groups.toarray() > 0
    scores = np.zeros(problem.candidates.shape)
    best = np.full(len(scores), -1)
    surely_none = np.diff(problem.candidates.indptr) == 0
    labelled = (given.getnnz(axis=1) > 0) | surely_none
    for i in range(len(scores)):
        fold = folds[np.flatnonzero(groups[:, i])[0]]
        apart = ~groups[folds == fold].any(axis=0)
        rows = np.flatnonzero(apart & labelled)
        if given[rows].nnz == 0:
            continue
        model = um.NearestCentroid().fit(problem.features[rows], given[rows])
        row = problem.features[i : i + 1]
        scores[i] = model.score_labels(row, problem.candidates[i : i + 1]).toarray()[0]
        best[i] = model.predict_topk(row, k=1).labels[0, 0]
    return scores, best


@pytest.mark.parametrize("overlap", [False, True])
def test_scores_equal_those_of_samples_one_by_one(overlap):
    for seed in range(3):
        small = literal.random_problem(seed, overlap=overlap)
        problem = Problem.of(*small.sparse)
        given, folds = random_assignment(problem), folds_of(problem, 3, seed)
        judged = score_folds(problem, given, um.NearestCentroid(), folds)
        scores, _ = judged_one_by_one(problem, given, folds)
        assert scores.min() >= 0  # cosines of positive features: compared as logarithms
        rows = np.repeat(np.arange(40), np.diff(judged.scores.indptr))
        wanted = np.log(np.maximum(scores[rows, judged.scores.indices], 1e-6))
        np.testing.assert_allclose(judged.scores.data, wanted, rtol=1e-5)
        np.testing.assert_array_equal(judged.scores.indices, problem.candidates.indices)
        np.testing.assert_array_equal(judged.scores.indptr, problem.candidates.indptr)


def test_scores_that_are_no_probabilities_stay_as_they_are():
    small = literal.random_problem(0, signed=True)
    problem = Problem.of(*small.sparse)
    given, folds = random_assignment(problem), folds_of(problem, 3)
    judged = score_folds(problem, given, um.NearestCentroid(), folds)
    wanted, _ = judged_one_by_one(problem, given, folds)
    rows = np.repeat(np.arange(40), np.diff(judged.scores.indptr))
    np.testing.assert_allclose(judged.scores.data, wanted[rows, judged.scores.indices], atol=1e-6)
    assert judged.scores.data.min() < 0


def test_the_agreement_is_that_of_held_out_answers():
    small = literal.random_problem(1, overlap=False)
    small = small._replace(counts=np.minimum(small.counts, 1))  # about one label per sample
    problem = Problem.of(*small.sparse)
    given, folds = random_assignment(problem), folds_of(problem, 4)
    judged = score_folds(problem, given, um.NearestCentroid(), folds)
    _, best = judged_one_by_one(problem, given, folds)
    assert judged.agreement == pytest.approx(literal_agreement(small, best[:, None]))


def test_nothing_to_learn_from_says_nothing():
    problem = Problem.of(np.eye(3), [[0, 1, 2]], [[0, 1]])
    judged = score_folds(
        problem, random_assignment(problem), um.NearestCentroid(), np.zeros(1, int)
    )
    assert judged.agreement == 0
    assert len(set(judged.scores.data)) == 1


def test_what_judges_find_alike_stands_by_the_first_scores():
    """Labels 2 and 3 are in one fold each, unknown to its judge."""
    X = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    problem = Problem.of(X, [0, 0, 0, 1, 1, 1], [[0, 1, 3], [0, 1, 2]])
    true = csr_matrix(([1.0] * 6, [0, 1, 3, 0, 1, 2], range(7)), shape=(6, 4), dtype=np.float32)
    first = problem.candidates.copy()
    first.data = true.toarray()[first.nonzero()]
    found = hand_out_anew(
        problem, first, um.NearestCentroid(), rounds=3, folds=2, samples_per_label="one", seed=0,
        done=lambda: None,
    )  # fmt: skip
    assert len(found.ballots) == 4
    for labels in (found.assigned, *found.ballots):
        assert (labels != true).nnz == 0


def literal_agreement(small, answers):
    fitting = given = 0
    for members, counts in zip(small.groups, small.counts, strict=True):
        found = Counter(label for row in answers[members] for label in row if label >= 0)
        given += sum(found.values())
        fitting += sum(min(n, counts[label]) for label, n in found.items())
    return fitting / given


def as_answers(Y):
    width = int(Y.sum(axis=1).max())
    return np.array([np.r_[np.flatnonzero(row), [-1] * (width - row.sum())] for row in Y], np.int32)


@pytest.mark.parametrize("overlap", [False, True])
def test_agreement_is_1_for_the_truth_and_less_for_anything_else(overlap):
    for seed in range(5):
        small = literal.random_problem(seed, overlap=overlap)
        rng = np.random.default_rng(seed)
        true = rng.random((40, 7)) < 0.25
        small = small._replace(counts=small.groups.astype(int) @ true)
        problem = Problem.of(*small.sparse)
        assert agreement(problem, as_answers(true)) == 1.0
        some = np.where(rng.random((40, 1)) < 0.5, as_answers(true), -1)
        assert agreement(problem, some) == 1.0  # precision, not recall
        shuffled = as_answers(rng.permutation(true))
        assert agreement(problem, shuffled) == pytest.approx(literal_agreement(small, shuffled))
        assert agreement(problem, shuffled) < 0.95
        assert agreement(problem, np.full((40, 2), -1, np.int32)) == 0.0


def test_agreement_rises_and_falls_with_the_truth():
    """It stands for the precision that nobody can measure."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 50, 2000)
    groups = um.data.group_randomly(2000, 5, random_state=0)
    problem = Problem.of(np.ones((2000, 1)), groups, um.data.aggregate(true, groups))
    shares = [0.0, 0.2, 0.5, 0.8, 1.0]
    wrong = rng.integers(0, 50, 2000)
    found = [
        agreement(
            problem, np.where(rng.random(2000) < share, true, wrong)[:, None].astype(np.int32)
        )
        for share in shares
    ]
    assert (np.diff(found) > 0.05).all()
