"""Draws from trees and by frequency on dense features, read with and without the correction."""

import time
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from papers.adversarial.figure1 import Curve, headline
from papers.adversarial.methods import METHODS, Quality, measure, train, warm_up
from papers.adversarial.tasks import Samples, Task
from papers.contents import Block, Cell, Table
from papers.progress import progress_bar
from umpteen.softmax import AdversarialSoftmax, NoiseTree

RATES = (0.03, 0.1, 0.3)
_TREES: dict[str, Literal["principal", "discriminant"]] = {
    "adversarial": "principal",
    "adversarial, discriminant": "discriminant",
}
_BASELINES = ("frequency", "uniform")
HOW = (
    "One negative in each step, negative sampling; learning rates of "
    f"{', '.join(f'{rate:g}' for rate in RATES)} and the reading, both with the highest accuracy "
    "on a validation split after the shortest time; seconds are those of fit on one core, in which "
    "the tree counts. Accuracy is that of corrected scores (Eq. 5) / of the scores alone."
)


class Accuracy(NamedTuple):
    """Of corrected scores, and of the scores alone, in %."""

    corrected: float
    alone: float


def compared(name: str, task: Task, points: tuple[float, ...]) -> Iterator[Block]:
    """Each method after so many seconds of steps, the trees by themselves, and who is faster."""
    warm_up(True)
    rows: list[list[Cell]] = []
    curves: dict[str, Curve] = {}
    methods = (*_TREES, *_BASELINES)
    with progress_bar(name, len(methods)) as advance:
        for method in methods:
            setting = _setting(method)
            rate, reading = _chosen(task, setting, points[0])
            row: list[Cell] = [method, f"{rate:g}", ("corrected", "alone")[reading]]
            curves[method] = []
            for seconds in points:
                model, taken = train(task, {**setting, "learning_rate": rate}, seconds)
                found = read(model, task.test)
                row.append(f"{found.corrected:.1f} / {found.alone:.1f} ({taken:.1f} s)")
                curves[method].append((taken, Quality(found[reading], 0.0)))
            rows.append(row)
            advance()
    rows += [_tree_alone(task, directions, len(points)) for directions in _TREES.values()]
    columns = ["method", "rate", "reading", *(f"{each:g} s of steps" for each in points)]
    yield task.said() + "."
    yield Table(f"{name}: accuracy on test, in %", columns, rows)
    yield headline(curves, _BASELINES)


def _chosen(task: Task, setting: dict[str, Any], seconds: float) -> tuple[float, int]:
    """The learning rate and the reading with the highest accuracy on the validation split."""
    found = {}
    for rate in RATES:
        model, _ = train(task, {**setting, "learning_rate": rate}, seconds)
        for reading, accuracy in enumerate(read(model, task.validation)):
            found[rate, reading] = accuracy
    return max(found, key=lambda each: found[each])


def _tree_alone(
    task: Task, directions: Literal["principal", "discriminant"], n_points: int
) -> list[Cell]:
    tree = NoiseTree(directions=directions, n_jobs=1, verbose=False)
    began = time.perf_counter()
    tree.fit(task.X, task.Y)
    taken = time.perf_counter() - began
    best = tree.topk(task.test.X, k=1).labels[:, 0]
    alone = f"{100 * float((best == task.test.y).mean()):.1f} ({taken:.1f} s)"
    return [f"the tree alone, {directions}", None, None, alone, *[None] * (n_points - 1)]


def _setting(method: str) -> dict[str, Any]:
    setting = {**METHODS[method.partition(",")[0]], "n_jobs": 1}
    if method in _TREES:
        setting["noise"] = NoiseTree(directions=_TREES[method], n_jobs=1, verbose=False)
    return setting


def read(model: AdversarialSoftmax, samples: Samples) -> Accuracy:
    """Return the accuracy of both readings."""
    scores = samples.X @ model.scores_.weights.T + model.scores_.biases
    alone = 100 * float((scores.argmax(axis=1) == samples.y).mean())
    return Accuracy(measure(model, samples).accuracy, alone)
