"""Labels assigned again, by the scores of classifiers for samples that they have not seen."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import clone

from umpteen.aggregated.assignment import handed_out
from umpteen.aggregated.counting import PairScores, count_by_scores, labels_of_others
from umpteen.aggregated.problem import Problem
from umpteen.base import ExtremeClassifier, LearnsRoughly

_TIE = 1e-3  # weight of the first similarities, for samples that solvers find alike
_SOME = 1e-9  # agreement; without any, as where all groups overlap, solvers have nothing to say
_FEWEST, _MOST = 2, 4  # rounds; more than the fewest only while estimated numbers still change
_SETTLED = 0.1  # share by which they change
_LEAST = 1e-6  # of a score that is a probability: beyond that, small ones say nothing more


@dataclass(frozen=True, eq=False)
class Outcome:
    """Labels handed out by the average of the rounds, by each round alone, and how it went."""

    assigned: csr_matrix
    ballots: list[csr_matrix]  # the first assignment, then one of each round
    agreement: list[float]  # of solvers that learned from each assignment but the last
    name: str


def hand_out_anew(
    problem: Problem,
    scores: csr_matrix,
    solver: ExtremeClassifier,
    *,
    rounds: int | None,
    folds: int,
    samples_per_label: str,
    seed: int,
    done: Callable[[], object],
) -> Outcome:
    """Assign labels by first `scores`, then round by round by solvers of the other folds.

    The folds are the same in all rounds, so that agreements can be compared. Where only presence
    is known, each round also estimates anew how many samples of a group have a label. `rounds=None`
    means two, and up to four while these numbers still change by a tenth. Rounds end early where
    solvers agree with nothing, as where all groups overlap.
    """
    numbers: npt.NDArray[np.float32] | None = None

    def by(values: npt.NDArray[np.float32]) -> csr_matrix:
        pairs = csr_matrix((values, scores.indices, scores.indptr), shape=scores.shape)
        return handed_out(problem, pairs, samples_per_label, numbers)

    n_best = problem.n_answers(samples_per_label)
    fold_of = np.random.default_rng(seed).permutation(problem.n_groups) % folds
    others = labels_of_others(problem, seed) if samples_per_label == "estimate" else None
    assigned = by(scores.data)
    ballots, agreements = [assigned], list[float]()
    tie = scores.data * np.float32(_TIE / max(1e-30, np.abs(scores.data).max(initial=0)))
    total = np.zeros_like(tie)
    for n_rounds in range(1, (_MOST if rounds is None else rounds) + 1):
        found = score_folds(problem, assigned, scout(solver), fold_of, n_best, others)
        done()
        if found.agreement < _SOME:
            break
        agreements.append(found.agreement)
        total += found.scores.data
        before, numbers = numbers, found.numbers
        assigned = by(total + tie)
        ballots.append(by(found.scores.data + tie))
        if rounds is None and n_rounds >= _FEWEST and has_settled(before, numbers):
            break
    return Outcome(assigned, ballots, agreements, "rounds" if agreements else "first")


def has_settled(
    before: npt.NDArray[np.float32] | None, numbers: npt.NDArray[np.float32] | None
) -> bool:
    """Return whether the estimated numbers of samples hardly change any more."""
    if before is None or numbers is None:
        return True
    return bool(np.abs(numbers - before).sum() <= _SETTLED * before.sum())


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Scores of samples by solvers that did not learn from them."""

    scores: csr_matrix  # (n, n_labels), of the labels of its groups
    agreement: float  # of their answers with the groups' labels, 0 to 1
    numbers: npt.NDArray[np.float32] | None = None  # estimated, of `problem.group_labels`


def score_folds(
    problem: Problem,
    assigned: csr_matrix,
    solver: ExtremeClassifier,
    folds: npt.NDArray[np.int64],
    n_best: int = 1,
    others: csr_matrix | None = None,
) -> FoldScores:
    """Score the samples of each fold of groups by a solver trained on the other folds.

    A group is in one fold; a sample of several groups is scored with the first of them, and
    not learned from where any of its groups is scored. So who scores it has learned neither
    from it nor from any sample of that first group; others of its groups may have been seen.
    Agreement is that of each sample's `n_best` labels. With `others`, labels that samples do not
    have, the scores also say how many samples of a group have each label, unless they are no
    probabilities.
    """
    members = problem.groups.T.tocsr()  # (n, n_groups)
    fold_of = folds[members.indices[members.indptr[:-1]]]  # every sample is in a group
    learnable = problem.worth_learning(assigned)
    scores = np.zeros(problem.candidates.nnz, np.float32)
    other_scores = np.zeros(0 if others is None else others.nnz, np.float32)
    answers = np.full((problem.X.shape[0], n_best), -1, np.int32)
    for fold in range(int(folds.max()) + 1):
        hidden = np.asarray((members @ (folds == fold).astype(np.float32)) > 0).ravel()
        learned = learnable[~hidden[learnable]]
        rows = np.flatnonzero(fold_of == fold)
        if len(rows) == 0 or assigned[learned].nnz == 0:
            continue
        model = quiet(solver).fit(problem.features[learned], assigned[learned])
        asked = problem.candidates[rows]
        answer = model.score_labels(problem.features[rows], asked)
        scores[_positions(problem.candidates, rows)] = answer.data
        if others is not None:
            answer = model.score_labels(problem.features[rows], others[rows])
            other_scores[_positions(others, rows)] = answer.data
        best = model.predict_topk(problem.features[rows], k=n_best)
        answers[rows] = best.padded(n_best).labels
    pairs = _like(problem.candidates, _comparable(scores))
    numbers = None
    if others is not None and _are_probabilities(scores) and _are_probabilities(other_scores):
        given = PairScores(_like(problem.candidates, scores), _like(others, other_scores))
        numbers = count_by_scores(problem, given)
    return FoldScores(pairs, agreement(problem, answers), numbers)


def agreement(problem: Problem, answers: npt.NDArray[np.int32]) -> float:
    """Return how well the labels of samples (-1: none) add up to those of their groups.

    The share of answers that the groups' counts have room for: where only presence is known, each
    label counts once in a group. It needs no true labels of samples.
    """
    rows = np.repeat(np.arange(len(answers)), answers.shape[1])
    given = csr_matrix(
        ((answers.ravel() >= 0).astype(np.float32), (rows, np.maximum(answers.ravel(), 0))),
        shape=(len(answers), problem.n_labels),
    )
    per_group = csr_matrix(problem.groups @ given)
    room = per_group.minimum(problem.group_labels)
    return float(room.sum()) / max(1.0, float(per_group.sum()))


def quiet(solver: ExtremeClassifier) -> ExtremeClassifier:
    """Return a new, unfitted copy without a progress bar: there is one already."""
    copy: ExtremeClassifier = clone(solver)
    if "verbose" in copy.get_params(deep=False):
        copy.set_params(verbose=False)
    return copy


def scout(solver: ExtremeClassifier) -> ExtremeClassifier:
    """Return an unfitted solver for the rounds, where assigned labels are full of errors."""
    return quiet(solver.roughly() if isinstance(solver, LearnsRoughly) else solver)


def _positions(pairs: csr_matrix, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where the entries of some rows stand."""
    lengths = np.diff(pairs.indptr)[rows]
    ends = np.cumsum(lengths)
    return np.repeat(pairs.indptr[rows] - ends + lengths, lengths) + np.arange(ends[-1])


def _like(pairs: csr_matrix, values: npt.NDArray[np.float32]) -> csr_matrix:
    return csr_matrix((values, pairs.indices, pairs.indptr), shape=pairs.shape)


def _are_probabilities(scores: npt.NDArray[np.float32]) -> bool:
    return bool(scores.min(initial=0) >= 0 and scores.max(initial=0) <= 1)


def _comparable(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Logarithms, if scores are probabilities: rounds are averaged, and these have a scale."""
    if _are_probabilities(scores):
        return np.log(np.maximum(scores, np.float32(_LEAST)))
    return scores
