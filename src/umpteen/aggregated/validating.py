"""Validation groups say which assignment is best, and whether all labels of a group are better."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.aggregated.problem import Problem
from umpteen.aggregated.rounds import quiet
from umpteen.base import ExtremeClassifier

_MOST_SAMPLES = 3000  # to learn from and to compare on, two thirds and one third
_FEWEST_GROUPS = 12  # with fewer, the comparison would be chance
_CLEARLY = 0.95  # of hits and of lift, chosen on 24 validation settings
_ABOUT = 0.96  # of hits and of lift, chosen by benchmarks/aggregated_baseline.py


@dataclass(frozen=True)
class GroupFit:
    """How well answers for samples fit the labels of their groups."""

    hits: float  # the share of answers that their group has
    lift: float  # by how much that is more than any group has these labels

    def is_clearly_better(self, other: "GroupFit") -> bool:
        """Return whether both measures are better by more than chance."""
        return _CLEARLY * self.hits > other.hits and _CLEARLY * self.lift > other.lift

    def is_about_as_good(self, other: "GroupFit") -> bool:
        """Return whether neither measure is worse by more than chance."""
        return self.hits >= _ABOUT * other.hits and self.lift >= _ABOUT * other.lift


class Fits(NamedTuple):
    """How well a solver fits: its best answers, and its best and second best together."""

    best: GroupFit
    two: GroupFit


def best_labels(
    problem: Problem, found: dict[str, csr_matrix], solver: ExtremeClassifier, seed: int
) -> str:
    """Return which of the labels `found` by name predict validation groups best, or "baseline".

    Of the ways, the last wins unless the best answers of an earlier one are clearly better.
    Baseline wins if its two best answers are about as often labels of the group, and exceed chance
    about as much: then the samples of a group do share its labels. One answer would not do: it
    fits as well if samples share one label and differ in the others. Both measures
    count, since frequent answers alone are often right, and rare ones far from chance. With few
    groups, there is no comparison, and the last wins.
    """
    *earlier, best = found
    _, learned = _validation_groups(problem, seed)
    if problem.n_groups < _FEWEST_GROUPS or found[best][learned].nnz == 0:
        return best
    baseline, *others, ours = compare_labels(
        problem, [problem.everything, *found.values()], solver, seed
    )
    for name, other in zip(earlier, others, strict=True):
        if other.best.is_clearly_better(ours.best):
            best, ours = name, other
    return "baseline" if baseline.two.is_about_as_good(ours.two) else best


def compare_labels(
    problem: Problem, candidates: Sequence[csr_matrix], solver: ExtremeClassifier, seed: int
) -> list[Fits]:
    """Return how well solvers that learn from each of the candidate labels fit validation groups.

    All learn from the same samples, at most 2,000, and answer for the samples of other groups.
    """
    validation, learned = _validation_groups(problem, seed)
    asked = np.flatnonzero(problem.groups[validation].getnnz(axis=0))
    fits = []
    for labels in candidates:
        rows = np.intersect1d(learned, problem.worth_learning(labels))
        model = quiet(solver).fit(problem.features[rows], labels[rows])
        answers = model.predict_topk(problem.features[asked], k=2).padded(2).labels
        best = compare_to_groups(problem, validation, asked, answers[:, 0])
        two = compare_to_groups(problem, validation, np.repeat(asked, 2), answers.ravel())
        fits.append(Fits(best, two))
    return fits


def compare_to_groups(
    problem: Problem,
    validation: npt.NDArray[np.intp],
    samples: npt.NDArray[np.intp],
    answers: npt.NDArray[np.int32],
) -> GroupFit:
    """Compare the labels `answers` of `samples` (-1: none) with those of the validation groups.

    A sample that occurs several times has several answers.
    """
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
