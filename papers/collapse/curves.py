"""Figures 2, 3 and 4: all measures over training; balanced, imbalanced, with sets missing."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.collapse.stacks import (
    Measures,
    Sizes,
    Stacks,
    Training,
    available,
    moments,
    stacks,
)
from papers.contents import Block, Cell, Section, Table, Value
from papers.drawing import lines
from umpteen.metrics import tagwise_angle

_CLAIM = (
    "all measures go to 0 in the last phase of training: samples fall onto the mean of their "
    "label set (NC1), means and classifier form the same simplex (NC2, NC3), and means of sets "
    "are multiples of the sums of their labels' means (NCm)"
)
# Harder images take longer until all training samples are learnt.
_EPOCHS = {"MNIST": 60, "Fashion-MNIST": 150}
_MISSING = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]


def sections(quick: bool) -> list[Section]:
    """Balanced sets, then one imbalanced and one with label sets missing."""
    single = 40 if quick else 200
    balanced: Sizes = {1: single, 2: single // 10, 3: max(2, single // 50)}
    names = available()[:1] if quick else available()
    made = [
        Section(
            f"Figures 3 and 4, all measures over training: {name}",
            f"{_CLAIM}; also with sets of three labels.",
            f"Pad-and-stack images of {name}, equally many of each set of one, two and three "
            f"labels; {_training(name, quick).in_words()}. Measured on the training samples.",
            partial(_measured, name, balanced, _training(name, quick)),
        )
        for name in names
    ]
    if not names:
        return []
    groups = (single // 5, single // 10, max(2, single // 100))
    made.append(
        Section(
            "Figure 2, pairs of labels imbalanced",
            f"{_CLAIM}; that holds for frequent and for rare pairs as long as samples with one "
            "label are balanced. There: groups of 500, 50 and 5 samples per pair.",
            f"{names[-1]}; groups of {groups[0]}, {groups[1]} and {groups[2]} samples per pair; "
            f"{_training(names[-1], quick).in_words()}.",
            partial(
                _measured,
                names[-1],
                {1: single, 2: groups},
                _training(names[-1], quick),
                groups=True,
            ),
        )
    )
    made.append(
        Section(
            "Figure 2, pairs of labels missing",
            f"{_CLAIM}; that holds where some sets of several labels have no samples at all.",
            f"{names[0]}, without samples of the five pairs {_listed(_MISSING)}; "
            f"{_training(names[0], quick).in_words()}.",
            partial(
                _measured,
                names[0],
                {1: single, 2: single // 10},
                _training(names[0], quick),
                missing=_MISSING,
            ),
        )
    )
    return made


def _training(name: str, quick: bool) -> Training:
    return Training(12 if quick else _EPOCHS[name])


def _measured(
    name: str, sizes: Sizes, training: Training, *, missing: Any = (), groups: bool = False
) -> Iterator[Block]:
    task = stacks(name, sizes, missing=missing)
    yield task.in_words()
    by_group: dict[str, list[float]] = {}
    measures = Measures(task.train.X, task.train.Y, moments(training.epochs))
    if groups:
        measures.also = partial(_of_groups, _group_rows(task), task, by_group)
    model = training.network(0).fit(task.train.X, task.train.Y, watch=measures)
    yield lines(
        "All measures, on a logarithmic axis", measures.epochs, measures.curves(),
        x_label="epochs", y_label="measure", logarithmic=True,
    )  # fmt: skip
    if groups:
        yield lines(
            "NCm of pairs with many, some and few samples", measures.epochs, by_group,
            x_label="epochs", y_label="NCm", logarithmic=True,
        )  # fmt: skip
    yield falls({**measures.curves(), **by_group})
    right = 100 * model.score(task.train.X, task.train.Y)
    yield f"At the end, the best label is a right one for {right:.1f} % of the training samples."


def falls(curves: Mapping[str, list[float]]) -> Table:
    """What each measure falls from and to."""
    rows: list[list[Cell]] = [
        [
            name, Value(curve[0], digits=3), Value(curve[-1], digits=4),
            Value(curve[0] / max(curve[-1], 1e-12), digits=1),
        ]
        for name, curve in curves.items()
    ]  # fmt: skip
    columns = ["measure", "after the first epoch", "at the end", "times smaller"]
    return Table("How far each measure falls", columns, rows)


def _group_rows(task: Stacks) -> dict[int, npt.NDArray[np.bool_]]:
    """Samples with one label, and those of the pairs with so many samples, by that number."""
    _, which = np.unique(task.train.Y.toarray(), axis=0, return_inverse=True)
    counts, sizes = np.bincount(which)[which], np.diff(task.train.Y.indptr)
    return {
        int(count): (sizes == 1) | ((sizes == 2) & (counts == count))
        for count in np.unique(counts[sizes == 2])[::-1]
    }


def _of_groups(
    rows: dict[int, npt.NDArray[np.bool_]],
    task: Stacks,
    found: dict[str, list[float]],
    features: Any,
) -> None:
    for count, chosen in rows.items():
        name = f"NCm, pairs with {count} samples"
        found.setdefault(name, []).append(tagwise_angle(features[chosen], task.train.Y[chosen]))


def _listed(sets: Iterable[tuple[int, ...]]) -> str:
    return ", ".join("{" + ", ".join(map(str, each)) + "}" for each in sets)
