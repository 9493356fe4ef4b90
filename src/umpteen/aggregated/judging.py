"""Is an assignment worth it? Held-out groups say whether all labels of a group do as well."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.aggregated.problem import Problem
from umpteen.aggregated.rounds import quiet
from umpteen.base import ExtremeClassifier

_MOST_SAMPLES = 3000  # to learn from and to judge by, two thirds and one third
_FEWEST_GROUPS = 12  # with fewer, the comparison would be chance
_MARGIN = {"count": 1.0, "estimate": 0.75, "one": 1.0}  # chosen on 24 validation settings


def is_worth_it(
    problem: Problem,
    assigned: csr_matrix,
    solver: ExtremeClassifier,
    samples_per_label: str,
    seed: int,
) -> bool:
    """Return whether `assigned` predicts held-out groups better than all labels of the groups do.

    Two solvers learn from the same samples, at most 2,000: one from their assigned labels, one
    from all labels of their groups (the paper's Baseline). Both name the best label of the samples
    of other groups, and `lift` judges. Baseline is trained for just this question, so where counts
    are not known an assignment has to be better by a third. With few groups the answer is yes.
    """
    judges, learned = _held_out(problem, seed)
    if problem.n_groups < _FEWEST_GROUPS or assigned[learned].nnz == 0:
        return True
    asked = np.flatnonzero(problem.groups[judges].getnnz(axis=0))

    def lift_of(labels: csr_matrix) -> float:
        rows = np.intersect1d(learned, problem.worth_learning(labels))
        model = quiet(solver).fit(problem.features[rows], labels[rows])
        best = model.predict_topk(problem.features[asked], k=1).padded(1).labels.ravel()
        return lift(problem, judges, asked, best)

    return lift_of(problem.everything) < _MARGIN[samples_per_label] * lift_of(assigned)


def lift(
    problem: Problem,
    judges: npt.NDArray[np.intp],
    samples: npt.NDArray[np.intp],
    answers: npt.NDArray[np.int32],
) -> float:
    """Return how much more often a group has the answer for its sample than groups have it at all.

    `answers` are labels of `samples` (-1: none), `judges` the groups that are asked.
    """
    sizes = problem.sizes().astype(np.float64)
    share = (problem.label_groups.astype(bool) @ sizes) / sizes.sum()
    named = csr_matrix(
        (np.ones(len(samples)), (samples, np.maximum(answers, 0))),
        shape=(problem.X.shape[0], problem.n_labels),
    )[samples[answers >= 0]]
    members = problem.groups[judges][:, samples[answers >= 0]]
    in_group = (members @ named).multiply(problem.group_labels[judges].astype(bool)).sum()
    by_chance = float((members @ (named @ share)).sum())
    return float(in_group - by_chance) / max(1, members.nnz)


def _held_out(problem: Problem, seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return groups to judge by, and samples of none of them to learn from."""
    order = np.random.default_rng((seed, 1)).permutation(problem.n_groups)
    n_used = np.cumsum(problem.sizes()[order])
    order = order[n_used <= max(_MOST_SAMPLES, n_used[0])]
    judges, others = np.split(order, [len(order) // 3])
    is_asked = problem.groups[judges].getnnz(axis=0) > 0
    is_other = problem.groups[others].getnnz(axis=0) > 0
    return judges, np.flatnonzero(is_other & ~is_asked)
