"""What the counts of groups' labels say: how many samples, or only that there is one."""

import numpy as np

from umpteen.aggregated.problem import Problem, groups_with
from umpteen.errors import GroupsError, ParameterError

SHARES = ("auto", "one", "count", "estimate")

_SURELY = 10.0  # repeats that are expected by chance; that there are none is no chance


def check_share(samples_per_label: object) -> None:
    """Refuse anything but those of `SHARES`."""
    if not isinstance(samples_per_label, str) or samples_per_label not in SHARES:
        raise ParameterError(
            f"samples_per_label={samples_per_label!r} is not possible: expected one of {SHARES}"
        )


def understood(problem: Problem, samples_per_label: str) -> str:
    """Return what "auto" stands for: "estimate" if no label is repeated where chance would.

    If samples had their labels independently, a label of many groups would be in some of them
    twice. Where all counts are 1 although ten or more repeats are to be expected, they say that a
    label occurs, not how often.
    """
    if samples_per_label == "auto":
        is_presence = problem.group_labels.data.max(initial=0) <= 1
        samples_per_label = (
            "estimate" if is_presence and expected_repeats(problem) > _SURELY else "count"
        )
    if samples_per_label == "count":
        _check_counts(problem)
    return samples_per_label


def expected_repeats(problem: Problem) -> float:
    """Return in how many groups labels would be repeated if samples had them independently."""
    p = problem.probabilities
    sizes, n_groups = np.unique(problem.sizes(), return_counts=True)
    repeats = groups_with(p, sizes, n_groups)
    for size, n in zip(sizes, n_groups, strict=True):
        repeats = repeats - n * size * p * (1 - p) ** (size - 1)
    return float(repeats.sum())


def _check_counts(problem: Problem) -> None:
    labels = problem.group_labels
    group_of = np.repeat(np.arange(problem.n_groups), np.diff(labels.indptr))
    excess = np.flatnonzero(labels.data > problem.sizes()[group_of])
    if len(excess):
        first = excess[0]
        group = int(problem.given[group_of[first]])
        raise GroupsError(
            f"label {labels.indices[first]} occurs {labels.data[first]:g} times in group {group}, "
            f"which has {problem.sizes()[group_of[first]]} samples: a count is the number of "
            "samples that have the label. If yours are something else, pass "
            'samples_per_label="estimate", which uses only whether a label occurs'
        )
