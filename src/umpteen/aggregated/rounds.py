"""Labels handed out anew by what a classifier thinks of samples that it has not seen."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.base import clone

from umpteen.aggregated.assignment import handed_out
from umpteen.aggregated.problem import Problem
from umpteen.base import ExtremeClassifier

_TIE = 1e-3  # weight of the first similarities, for samples that solvers find alike
_SOME = 1e-9  # agreement; without any, as where all groups overlap, solvers have nothing to say
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
    rounds: int,
    folds: int,
    samples_per_label: str,
    seed: int,
    done: Callable[[], object],
) -> Outcome:
    """Assign labels by first `scores`, then round by round by solvers of the other folds.

    The folds are the same in all rounds, so that agreements can be compared. Where solvers that
    learned from an assignment agree less with the groups' labels than those before, that
    assignment is taken back, and the rounds end.
    """

    def by(values: npt.NDArray[np.float32]) -> csr_matrix:
        pairs = csr_matrix((values, scores.indices, scores.indptr), shape=scores.shape)
        return handed_out(problem, pairs, samples_per_label)

    n_best = problem.n_answers(samples_per_label)
    fold_of = np.random.default_rng(seed).permutation(problem.n_groups) % folds
    ballots, history, agreements = [by(scores.data)], [by(scores.data)], list[float]()
    tie = scores.data * np.float32(_TIE / max(1e-30, np.abs(scores.data).max(initial=0)))
    total = np.zeros_like(tie)
    for _ in range(rounds):
        found = score_folds(problem, history[-1], solver, fold_of, n_best)
        done()
        agreements.append(found.agreement)
        if found.agreement < max(agreements[:-1], default=_SOME):
            if len(history) > 1:
                history.pop()
                ballots.pop()
            break
        total += found.scores.data
        history.append(by(total + tie))
        ballots.append(by(found.scores.data + tie))
    name = "rounds" if len(history) > 1 else "first"
    return Outcome(history[-1], ballots, agreements, name)


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Scores of samples by solvers that did not learn from them."""

    scores: csr_matrix  # (n, n_labels), of the labels of its groups
    agreement: float  # of their answers with the groups' labels, 0 to 1


def score_folds(
    problem: Problem,
    assigned: csr_matrix,
    solver: ExtremeClassifier,
    folds: npt.NDArray[np.int64],
    n_best: int = 1,
) -> FoldScores:
    """Score the samples of each fold of groups by a solver trained on the other folds.

    A group is in one fold; a sample of several groups is scored with the first of them, and
    not learned from where any of its groups is scored. So who scores it has learned neither
    from it nor from any sample of that first group; others of its groups may have been seen.
    Agreement is that of each sample's `n_best` labels.
    """
    members = problem.groups.T.tocsr()  # (n, n_groups)
    fold_of = folds[members.indices[members.indptr[:-1]]]  # every sample is in a group
    learnable = problem.worth_learning(assigned)
    scores = np.zeros(problem.candidates.nnz, np.float32)
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
        best = model.predict_topk(problem.features[rows], k=n_best)
        answers[rows] = best.padded(n_best).labels
    values = (_comparable(scores), problem.candidates.indices, problem.candidates.indptr)
    pairs = csr_matrix(values, shape=problem.candidates.shape)
    return FoldScores(pairs, agreement(problem, answers))


def agreement(problem: Problem, answers: npt.NDArray[np.int32]) -> float:
    """Return how well the labels of samples (-1: none) add up to those of their groups.

    The share of answers that the groups' counts have room for: where only presence is known, each
    label counts once in a group. It needs no true labels of samples, yet rises and falls with the
    precision that they would show, also from one grouping to another
    (benchmarks/results/aggregated_choices.md has the correlation).
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


def _positions(pairs: csr_matrix, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where the entries of some rows stand."""
    lengths = np.diff(pairs.indptr)[rows]
    ends = np.cumsum(lengths)
    return np.repeat(pairs.indptr[rows] - ends + lengths, lengths) + np.arange(ends[-1])


def _comparable(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Logarithms, if scores are probabilities: rounds are averaged, and these have a scale."""
    if scores.min(initial=0) >= 0 and scores.max(initial=0) <= 1:
        return np.log(np.maximum(scores, np.float32(_LEAST)))
    return scores
