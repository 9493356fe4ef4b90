"""Every method of the paper on dense features, read with and without the correction."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from papers.adversarial.figure1 import Curve, reached
from papers.adversarial.methods import BASELINES, METHODS, Quality, train, warm_up
from papers.adversarial.rates import best_rate, neighbours
from papers.adversarial.shares import signal_share
from papers.adversarial.tasks import Samples, Task
from papers.contents import Block, Cell, Table, Value, over_seeds
from papers.drawing import curves as drawn
from papers.progress import progress_bar
from umpteen.softmax import AdversarialSoftmax, NoiseTree

RATES = (0.03, 0.1, 0.3)
Directions = Literal["principal", "discriminant"]
_DISCRIMINANT = "adversarial, discriminant"
_REFERENCE = "frequency"  # the baseline that the trials of the others are compared with
_GIVEN_UP = 0.8  # of its accuracy
_BLOCK_SCORES = 2**22
HOW = (
    "One negative in each step. Of the learning rates "
    f"{', '.join(f'{rate:g}' for rate in RATES)}, each method has the one with the highest "
    "accuracy on a validation split after the same time; the longest training tries the rate of "
    "the one before and the next smaller one. Accuracy and likelihood are those of corrected "
    "scores (Eq. 5) or of the scores alone, whichever is better on the validation split. Baselines "
    "other than frequency have a trial of the second-longest time; those below "
    f"{100 * _GIVEN_UP:g} % of frequency's accuracy then are not trained longer. The adversarial "
    "methods, frequency and the best baseline are trained with all seeds, the others "
    "with the first one. "
    "Seconds are CPU seconds of fit in one thread, in which the tree counts. The tree's share of "
    "the class signal is the mutual information of classes and its 16 directions over that of all "
    "features, if classes were Gaussian with the same covariance."
)


class Readings(NamedTuple):
    """What corrected scores are worth, and the scores alone."""

    corrected: Quality
    alone: Quality


@dataclass(frozen=True)
class Trained:
    """A training: its rate, its CPU seconds, and what it is worth."""

    rate: float
    seconds: float
    validation: Readings
    test: Readings

    @property
    def reading(self) -> int:
        """The one with the higher accuracy on the validation split: 0 is corrected."""
        return int(np.argmax([each.accuracy for each in self.validation]))

    @property
    def worth(self) -> float:
        """The accuracy on the validation split."""
        return self.validation[self.reading].accuracy

    @property
    def quality(self) -> Quality:
        """Accuracy and likelihood on test, each of its better reading on the validation split."""
        likelier = int(np.argmax([each.likelihood for each in self.validation]))
        return Quality(self.test[self.reading].accuracy, self.test[likelier].likelihood)


Runs = list[list[Trained]]  # by seed, then by time


def compared(
    name: str, task: Task, points: Sequence[float], *, n_seeds: int = 3, discriminant: bool = False
) -> Iterator[Block]:
    """Each method after so many seconds of steps, the trees by themselves, and who is faster."""
    warm_up(True)
    trees = ["adversarial", *([_DISCRIMINANT] if discriminant else [])]
    found: dict[str, Runs] = {}
    with progress_bar(name, len(trees) + len(BASELINES) + 1) as advance:
        for method in (*trees, _REFERENCE):
            found[method] = [_tuned(task, method, points)]
            advance()
        for method in BASELINES:
            if method != _REFERENCE:
                found[method] = [_tried(task, method, points, found[_REFERENCE][0])]
                advance()
        best = max(BASELINES, key=lambda method: max(run.worth for run in found[method][0]))
        for method in dict.fromkeys((*trees, _REFERENCE, best)):
            found[method] += [_again(task, method, points, found[method][0], seed)
                              for seed in range(1, n_seeds)]  # fmt: skip
        advance()
    yield task.in_words() + f". Seeds: {n_seeds}."
    yield _by_time(name, found, points)
    yield _final(name, found)
    yield Table(
        f"{name}: the trees alone",
        ["directions", "accuracy, %", "log-likelihood", "seconds", "share of the class signal, %"],
        [
            _tree_alone(task, "discriminant" if method == _DISCRIMINANT else "principal")
            for method in trees
        ],
    )
    yield _picture(name, found)
    for baseline in dict.fromkeys((best, _REFERENCE)):
        yield faster(found, baseline)


def _tuned(
    task: Task, method: str, points: Sequence[float], known: Mapping[float, Trained] | None = None
) -> list[Trained]:
    """Return for each time the training with the highest accuracy on the validation split."""
    best: list[Trained] = []
    for place, seconds in enumerate(points):
        last = place and place == len(points) - 1
        rates = neighbours(RATES, best[-1].rate) if last else RATES
        best.append((known or {}).get(seconds) or _best(task, method, rates, seconds))
    return best


def _best(task: Task, method: str, rates: Sequence[float], seconds: float) -> Trained:
    return best_rate(rates, lambda rate: _run(task, method, rate, seconds), lambda run: run.worth)[
        1
    ]


def _tried(
    task: Task, method: str, points: Sequence[float], reference: list[Trained]
) -> list[Trained]:
    """Return all trainings of a baseline, or that of the trial alone if it is far behind."""
    trial = _best(task, method, RATES, points[-2])
    if trial.worth < _GIVEN_UP * reference[-2].worth:
        return [trial]
    return _tuned(task, method, points, {points[-2]: trial})


def _again(
    task: Task, method: str, points: Sequence[float], first: list[Trained], seed: int
) -> list[Trained]:
    return [_run(task, method, run.rate, seconds, seed)
            for run, seconds in zip(first, points, strict=True)]  # fmt: skip


def _run(task: Task, method: str, rate: float, seconds: float, seed: int = 0) -> Trained:
    setting = dict(METHODS[method.partition(",")[0]])
    if method == _DISCRIMINANT:
        setting["noise"] = NoiseTree(
            directions="discriminant", random_state=seed, n_jobs=1, verbose=False
        )
    setting |= {"learning_rate": rate, "random_state": seed}
    model, taken = train(task, setting, seconds)
    return Trained(rate, taken, read(model, task.validation), read(model, task.test))


def _by_time(name: str, found: Mapping[str, Runs], points: Sequence[float]) -> Table:
    rows: list[list[Cell]] = []
    for method, runs in found.items():
        cells: list[Cell] = [None] * len(points)
        first = len(points) - 2 if len(runs[0]) == 1 else 0  # a trial alone
        for place, each in enumerate(zip(*runs, strict=True), first):
            accuracy = over_seeds([run.quality.accuracy for run in each], digits=1)
            reading = ("corrected", "alone")[each[0].reading]
            cells[place] = f"{accuracy} ({reading}, rate {each[0].rate:g})"
        rows.append([method, *cells])
    columns = ["method", *(f"{each:g} s of steps" for each in points)]
    return Table(f"{name}: accuracy on test, in %", columns, rows)


def _final(name: str, found: Mapping[str, Runs]) -> Table:
    """The end of each method: highest accuracy, then accuracy and likelihood of the last model."""
    rows: list[list[Cell]] = []
    for method, runs in found.items():
        ends = [run[-1] for run in runs]
        highest = [max(each.quality.accuracy for each in run) for run in runs]
        rows.append([
            method, over_seeds([end.seconds for end in ends], digits=1),
            over_seeds(highest, digits=1),
            over_seeds([end.quality.accuracy for end in ends], digits=1),
            over_seeds([end.quality.likelihood for end in ends], digits=2),
            " / ".join(f"{np.mean([end.test[i].accuracy for end in ends]):.1f}" for i in (0, 1)),
        ])  # fmt: skip
    columns = ["method", "seconds", "highest accuracy, %", "final accuracy, %",
               "final log-likelihood", "final accuracy, corrected / alone"]  # fmt: skip
    return Table(f"{name}: in the end, on test", columns, rows)


def _picture(name: str, found: Mapping[str, Runs]) -> Block:
    curves = {method: _curve(runs[0]) for method, runs in found.items()}
    return drawn(
        f"{name}: accuracy on test over CPU seconds, first seed",
        {method: [at for at, _ in curve] for method, curve in curves.items()},
        {method: [quality.accuracy for _, quality in curve] for method, curve in curves.items()},
        x_label="CPU seconds, fitting the tree included", y_label="accuracy, %",
    )  # fmt: skip


def _curve(runs: list[Trained]) -> Curve:
    return [(run.seconds, run.quality) for run in runs]


def faster(found: Mapping[str, Runs], baseline: str) -> Table:
    """Return how long the trees take to the highest accuracy of a baseline of the same seed.

    The baseline may have it before the end: some fall back.
    """
    curves = [_curve(runs) for runs in found[baseline]]
    goals = [max(quality.accuracy for _, quality in curve) for curve in curves]
    own = [reached(curve, goal) or 0.0 for curve, goal in zip(curves, goals, strict=True)]
    rows: list[list[Cell]] = [[baseline, over_seeds(own, digits=1), Value(1.0, digits=1)]]
    for method, runs in found.items():
        if method in BASELINES:
            continue
        times = [reached(_curve(run), goal) for run, goal in zip(runs, goals, strict=True)]
        at = [seconds for seconds in times if seconds is not None]
        if len(at) < len(times):
            rows.append([method, f"{len(at)} of {len(times)} seeds reach it", None])
            continue
        ratios = np.divide(own, at)
        rows.append([method, over_seeds(at, digits=1), over_seeds(ratios, digits=1)])
    return Table(
        f"Seconds to the highest accuracy of {baseline} ({over_seeds(goals, digits=1)} %); "
        "speed-ups are those of the same seed",
        ["method", "seconds", "speed-up"], rows,
    )  # fmt: skip


def _tree_alone(task: Task, directions: Directions) -> list[Cell]:
    tree = NoiseTree(directions=directions, n_jobs=1, verbose=False)
    began = time.process_time()
    tree.fit(task.X, task.Y)
    taken = time.process_time() - began
    best = tree.topk(task.test.X, k=1).labels[:, 0]
    likelihood = float(tree.log_prob(task.test.X, task.test.y).mean())
    return [
        directions, Value(100 * float((best == task.test.y).mean()), digits=1), Value(likelihood),
        Value(taken, digits=1), Value(100 * signal_share(task, tree), digits=0),
    ]  # fmt: skip


def read(model: AdversarialSoftmax, samples: Samples) -> Readings:
    """Return accuracy and likelihood of both readings."""
    right, logs = np.zeros(2), np.zeros(2)
    size = max(1, _BLOCK_SCORES // len(model.counts_))
    for first in range(0, len(samples.y), size):
        rows = slice(first, first + size)
        X, y = samples.X[rows], samples.y[rows]
        alone = model.scores_.table(X)
        noise = model.noise_.log_prob_table(model.noise_.reduce(X))
        for place, scores in enumerate((np.add(alone, noise), alone)):
            right[place] += (scores.argmax(axis=1) == y).sum()
            logs[place] += _log_softmax(scores, y).sum()
    share, mean = 100 * right / len(samples.y), logs / len(samples.y)
    return Readings(*(Quality(*each) for each in zip(share.tolist(), mean.tolist(), strict=True)))


def _log_softmax(scores: Any, y: Any) -> Any:
    own = np.take_along_axis(scores, y[:, None], axis=1)[:, 0]
    highest = scores.max(axis=1)
    total = np.exp(scores - highest[:, None]).sum(axis=1, dtype=np.float64)
    return own - highest - np.log(total)
