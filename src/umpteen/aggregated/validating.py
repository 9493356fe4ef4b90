"""Validation groups say which assignment is best, and whether all labels of a group do as well."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.aggregated.problem import Problem
from umpteen.aggregated.rounds import quiet
from umpteen.base import ExtremeClassifier

_MOST_SAMPLES = 3000  # to learn from and to compare on, two thirds and one third
_FEWEST_GROUPS = 12  # with fewer, the comparison would be chance
_AS_OFTEN, _AS_MUCH = 0.95, 0.75  # of hits and of lift, chosen on 24 validation settings


@dataclass(frozen=True)
class GroupFit:
    """How well answers for samples fit the labels of their groups."""

    hits: float  # the share of answers that their group has
    lift: float  # by how much that is more than any group has these labels

    def is_clearly_better(self, other: "GroupFit") -> bool:
        """Return whether both measures are better by more than chance."""
        return _AS_OFTEN * self.hits > other.hits and _AS_OFTEN * self.lift > other.lift


def best_labels(
    problem: Problem, found: dict[str, csr_matrix], solver: ExtremeClassifier, seed: int
) -> str:
    """Return which of the labels `found` by name predict validation groups best, or "baseline".

    Solvers learn from the same samples, at most 2,000: from the labels that were found for them in
    each way, and from all labels of their groups (the paper's Baseline). Each names the best label
    of the samples of other groups. Of the ways, the last wins unless an earlier one is clearly
    better. Baseline wins if its answers are about as often labels of the group, and about as much
    more often than by chance: then the samples of a group do share its labels. By its frequent
    answers alone it is often right about a group, by rare ones far from chance. With few groups
    there is no comparison, and the last wins.
    """
    *earlier, best = found
    validation, learned = _validation_groups(problem, seed)
    if problem.n_groups < _FEWEST_GROUPS or found[best][learned].nnz == 0:
        return best
    asked = np.flatnonzero(problem.groups[validation].getnnz(axis=0))

    def measured(labels: csr_matrix) -> GroupFit:
        rows = np.intersect1d(learned, problem.worth_learning(labels))
        model = quiet(solver).fit(problem.features[rows], labels[rows])
        answers = model.predict_topk(problem.features[asked], k=1).padded(1).labels.ravel()
        return compare_to_groups(problem, validation, asked, answers)

    baseline, ours = measured(problem.everything), measured(found[best])
    for name in earlier:
        other = measured(found[name])
        if other.is_clearly_better(ours):
            best, ours = name, other
    is_worth_it = baseline.hits < _AS_OFTEN * ours.hits or baseline.lift < _AS_MUCH * ours.lift
    return best if is_worth_it else "baseline"


def compare_to_groups(
    problem: Problem,
    validation: npt.NDArray[np.intp],
    samples: npt.NDArray[np.intp],
    answers: npt.NDArray[np.int32],
) -> GroupFit:
    """Compare the labels `answers` of `samples` (-1: none) with those of the validation groups."""
    sizes = problem.sizes().astype(np.float64)
    share = (problem.label_groups.astype(bool) @ sizes) / sizes.sum()
    samples, answers = samples[answers >= 0], answers[answers >= 0]
    named = csr_matrix(
        (np.ones(len(samples)), (np.arange(len(samples)), answers)),
        shape=(len(samples), problem.n_labels),
    )
    members = problem.groups[validation][:, samples]
    hits = (members @ named).multiply(problem.group_labels[validation].astype(bool)).sum()
    by_chance = (members @ share[answers]).sum()
    n_asked = max(1, members.nnz)
    return GroupFit(float(hits) / n_asked, float(hits - by_chance) / n_asked)


def _validation_groups(
    problem: Problem, seed: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return groups to compare on, and samples of none of them to learn from."""
    order = np.random.default_rng((seed, 1)).permutation(problem.n_groups)
    n_used = np.cumsum(problem.sizes()[order])
    order = order[n_used <= max(_MOST_SAMPLES, n_used[0])]
    validation, others = np.split(order, [len(order) // 3])
    is_asked = problem.groups[validation].getnnz(axis=0) > 0
    is_other = problem.groups[others].getnnz(axis=0) > 0
    return validation, np.flatnonzero(is_other & ~is_asked)
