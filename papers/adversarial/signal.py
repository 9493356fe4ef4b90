"""Figure 1 where the tree can see what tells classes apart, and where it cannot."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np

from papers.adversarial.figure1 import best_rate
from papers.adversarial.methods import METHODS, measure, train, warm_up
from papers.adversarial.tasks import Samples, Task, as_matrix
from papers.contents import Block, Cell, Section, Table
from umpteen.softmax import AdversarialSoftmax, NoiseTree

_N_FEATURES, _NOISE, _NUISANCE = 64, 0.45, 3.0
_CASES = {"16 of 64 dimensions": (16, 0), "48 of 64 dimensions": (48, 0),
          "16, and 16 of nuisance": (16, 16)}  # fmt: skip
_RATES = (0.03, 0.1, 0.3)
_TREES: dict[str, Literal["principal", "discriminant"]] = {
    "adversarial": "principal",
    "adversarial, discriminant": "discriminant",
}


def sections(quick: bool) -> list[Section]:
    """One section."""
    n_classes, points = (300, (0.05, 0.2)) if quick else (10_000, (1.0, 4.0, 16.0))
    return [
        Section(
            "Figure 1 by where the class signal is",
            "with classes drawn from the tree, training converges at least ten times as fast as "
            "with every baseline.",
            f"{n_classes:,} Gaussian classes with frequencies by Zipf's law, {5 * n_classes:,} "
            f"samples of {_N_FEATURES} features, turned at random: class means differ in some "
            "dimensions only; nuisance is large and the same for all classes. One negative in "
            f"each step, negative sampling; rates of {_RATES}, chosen on a validation split after "
            f"{points[0]:g} s; seconds are those of fit on one core, in which the tree counts. "
            "Accuracy is that of corrected scores (Eq. 5) / of the scores alone.",
            partial(_measure, n_classes, points),
        )
    ]


def gaussian_classes(
    n_classes: int, signal: int, nuisance: int, seed: int = 0, n_others: int = 4_000
) -> Task:
    """Classes whose means differ in `signal` dimensions; half of the others are to choose by."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, n_classes + 1)
    n = 5 * n_classes
    drawn = random.choice(n_classes, n + n_others - n_classes, p=shares / shares.sum())
    y = np.concatenate([np.arange(n_classes), drawn])
    y[:n] = random.permutation(y[:n])  # all classes have a training sample
    means = np.zeros((n_classes, _N_FEATURES))
    means[:, :signal] = random.standard_normal((n_classes, signal))
    X = means[y] + _NOISE * random.standard_normal((len(y), _N_FEATURES))
    X[:, signal : signal + nuisance] += _NUISANCE * random.standard_normal((len(y), nuisance))
    turn = np.linalg.qr(random.standard_normal((_N_FEATURES, _N_FEATURES)))[0]
    X = (X @ turn).astype(np.float32)
    half = n + n_others // 2
    validation, test = Samples(X[n:half], y[n:half]), Samples(X[half:], y[half:])
    return Task("Gaussian classes", X[:n], as_matrix(y[:n], n_classes), validation, test)


def _measure(n_classes: int, points: tuple[float, ...]) -> Iterator[Block]:
    warm_up(True)
    for name, (signal, nuisance) in _CASES.items():
        task = gaussian_classes(n_classes, signal, nuisance)
        rows: list[list[Cell]] = []
        for method in ("adversarial", "adversarial, discriminant", "frequency", "uniform"):
            setting = _setting(method)
            rate, _ = best_rate(task, setting, points[0], _RATES)
            row: list[Cell] = [method, f"{rate:g}"]
            for seconds in points:
                model, taken = train(task, {**setting, "learning_rate": rate}, seconds)
                both = measure(model, task.test).accuracy, uncorrected(model, task.test)
                row.append(f"{both[0]:.1f} / {both[1]:.1f} ({taken:.1f} s)")
            rows.append(row)
        for directions in _TREES.values():
            tree = NoiseTree(directions=directions, n_jobs=1, verbose=False)
            began = time.perf_counter()
            best = tree.fit(task.X, task.Y).topk(task.test.X, k=1).labels[:, 0]
            taken = time.perf_counter() - began
            alone = f"{100 * float((best == task.test.y).mean()):.1f} ({taken:.1f} s)"
            rows.append([f"the tree alone, {directions}", None, alone, *[None] * (len(points) - 1)])
        columns = ["method", "rate", *(f"{seconds:g} s of steps" for seconds in points)]
        yield Table(f"Classes differ in {name}: accuracy on test, in %", columns, rows)


def _setting(method: str) -> dict[str, Any]:
    setting = {**METHODS[method.partition(",")[0]], "n_jobs": 1}
    if method in _TREES:
        setting["noise"] = NoiseTree(directions=_TREES[method], n_jobs=1, verbose=False)
    return setting


def uncorrected(model: AdversarialSoftmax, samples: Samples) -> float:
    """Accuracy in % of the scores without the noise."""
    scores = samples.X @ model.scores_.weights.T + model.scores_.biases
    return 100 * float((scores.argmax(axis=1) == samples.y).mean())
