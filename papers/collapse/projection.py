"""Figures 1 and 2: features of three classes in the plane, early and late in training."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from papers.collapse.stacks import Measures, Training, available, stacks
from papers.contents import Block, Cell, Figure, Section, Table, Value
from papers.drawing import Cloud, projections

_CASES: dict[str, list[tuple[int, int]]] = {"all pairs": [], "one pair missing": [(0, 1)]}
_SHOWN = 40  # points of each label set


def sections(quick: bool) -> list[Section]:
    """One section, if there are images."""
    names = available()
    if not names:
        return []
    training = Training(20 if quick else 60)
    return [
        Section(
            "Figures 1 and 2, three classes in the plane",
            "late in training, samples of a label set sit on one point; the points of the three "
            "labels form an equilateral triangle around 0, and those of pairs lie on the lines to "
            "the middles of its sides; also where a pair has no samples.",
            f"{names[0]}, the classes 0, 1 and 2; {training.in_words()}. The plane of the two main "
            "directions of all features; lines lead from 0 to the means.",
            partial(_pictures, names[0], training, 60 if quick else 300),
        )
    ]


def _pictures(name: str, training: Training, single: int) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for case, missing in _CASES.items():
        task = stacks(name, {1: single, 2: single // 2}, missing=missing, n_classes=3)
        seen: list[Any] = []
        measures = Measures(task.train.X, task.train.Y, [1, training.epochs], also=seen.append)
        training.network(0).fit(task.train.X, task.train.Y, watch=measures)
        yield _picture(case, seen, task.train.Y, training.epochs)
        last = measures.found[-1]
        rows.append([case, *(Value(each, digits=4) for each in (
            last.variability[1], last.means_simplex, last.tagwise_angle[2],
        ))])  # fmt: skip
    columns = ["", "NC1, one label", "NC2, means", "NCm, two labels"]
    yield Table("At the end", columns, rows)


def _picture(case: str, seen: list[Any], Y: Any, epochs: int) -> Figure:
    panels = {
        f"after epoch {epoch}": clouds(features, Y)
        for epoch, features in zip((1, epochs), seen, strict=True)
    }
    return projections(f"Features of each label set, {case}", panels)


def clouds(features: Any, Y: Any) -> list[Cloud]:
    """Some points and the mean of each label set, along the two main directions of all."""
    features = np.asarray(features, np.float64)
    _, _, axes = np.linalg.svd(features, full_matrices=False)
    flat = features @ axes[:2].T  # (n, 2)
    sets = [tuple(np.flatnonzero(row).tolist()) for row in Y.toarray()]
    found = []
    for labels in sorted(set(sets), key=lambda labels: (len(labels), labels)):
        points = flat[[each == labels for each in sets]]
        name = "{" + ", ".join(map(str, labels)) + "}"
        found.append(Cloud(name, points[:_SHOWN], points.mean(axis=0), dashed=len(labels) > 1))
    return found
