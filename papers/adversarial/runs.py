"""One training run: how good a method is, second by second."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from umpteen.softmax.parts import Part
from umpteen.softmax.starting import start_at_centroids, typical_length

from papers.adversarial.tasks import Judges, Task, as_matrix
from umpteen import parallel
from umpteen.progress import progress_bar
from umpteen.softmax import AdversarialSoftmax, NoiseTree
from umpteen.softmax.adversarial import DISCOUNTS
from umpteen.softmax.noise import Noise
from umpteen.softmax.prediction import Answers
from umpteen.softmax.training import State, train

_BLOCK_SCORES = 2**21
_BETWEEN = 1.5  # from one point of a curve to the next, the factor of seconds
_FOREVER = 1_000_000
_DIVERGED = -1e4  # the log-likelihood of scores that are no numbers, which JSON cannot tell

FloatArray = npt.NDArray[np.float32]
Setting = dict[str, Any]  # arguments of AdversarialSoftmax; `tree` and `max_rounds` of NoiseTree


class Quality(NamedTuple):
    """Accuracy in %, and mean log-likelihood of the right class."""

    accuracy: float
    likelihood: float


class Point(NamedTuple):
    """What a model is worth after so many seconds, with the noise taken out of scores or not.

    `ranked`: accuracy with a discount of frequencies that is chosen on validation, where the
    method has one.
    """

    seconds: float
    corrected: Quality
    uncorrected: Quality
    ranked: float | None = None

    @property
    def accuracy(self) -> float:
        """The better of both: with frequency noise, that may be without correction."""
        if self.ranked is not None:
            return self.ranked
        return max(self.corrected.accuracy, self.uncorrected.accuracy)


@dataclass
class Run:
    """A trained model and how it came about; `noise_seconds` are in the points' seconds, too."""

    task: Task
    state: State
    noise_seconds: float
    is_corrected: bool
    is_discounted: bool
    points: list[Point] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return self.noise_seconds + self.state.seconds

    def judge(self, judges: Judges) -> Point:
        """As it is now."""
        ranked = self.ranked(judges) if self.is_discounted else None
        return Point(self.seconds, *judged(self.state, judges, self.is_corrected), ranked)

    def ranked(self, judges: Judges) -> float:
        """Accuracy in %, with the discount of frequencies that serves validation best."""
        validation, answers = self.task.validation.first(len(judges.y)), self.answers()
        part = Part(validation.X, as_matrix(validation.y, self.task.n_classes))
        chosen = part.judge(answers, DISCOUNTS).discount
        return 100 * float((answers.best_by_discount(judges.X, [chosen])[0] == judges.y).mean())

    def answers(self, discount: float = 0.0) -> Answers:
        counts = Part(self.task.X, self.task.Y).counts
        state = self.state
        return Answers(state.model, state.noise, counts, self.is_corrected, discount, -1)


def run(
    task: Task, setting: Setting, seconds: float, judges: Judges | None = None, *,
    free_noise: bool = False,
) -> Run:  # fmt: skip
    """Train for so many seconds, in which fitting the noise counts unless it is free.

    With `judges`, points are taken on the way, at ever greater distances; judging takes no time.
    """
    model = _estimator(setting)
    noise, noise_seconds = _noise(task, setting)
    bounds = np.full(task.X.shape[0], float(task.n_classes))
    began = time.perf_counter()
    start = start_at_centroids(task.X, task.Y, float(model.centroid_scale))
    state = State(start, noise, bounds, seed=0, seconds=time.perf_counter() - began)
    corrected, discounted = model.objective == "negative_sampling", model.frequency_discount != 0
    found = Run(task, state, noise_seconds, corrected, discounted)
    left = seconds if free_noise else max(seconds - noise_seconds, 0.1)
    model.set_params(max_seconds=left, epochs=_FOREVER)
    with progress_bar(_named(setting), 1) as bar:
        plan = model.plan(task.n_classes, typical_length(task.X), model.refresh_after)
        train(state, task.X, task.Y, plan, after_chunk=_watcher(found, judges), bar=bar)
    if judges is not None:
        found.points.append(found.judge(judges))
    return found


def _watcher(found: Run, judges: Judges | None) -> Callable[[State], None]:
    next_at = [0.0]

    def watch(state: State) -> None:
        if judges is not None and state.seconds >= next_at[0]:
            found.points.append(found.judge(judges))
            next_at[0] = state.seconds * _BETWEEN

    return watch


def judged(state: State, judges: Judges, is_corrected: bool) -> tuple[Quality, Quality]:
    """With the noise taken out (Eq. 5), and as the scores are; all classes, a block at a time."""
    size = max(1, min(512, _BLOCK_SCORES // len(state.model.biases)))

    def block(first: int) -> npt.NDArray[np.float64]:  # (2, rows, 2)
        X, y = judges.X[first : first + size], judges.y[first : first + size]
        scores = state.model.table(X)
        raw = _hits(scores, y)
        if is_corrected:
            scores += state.noise.log_prob_table(state.noise.reduce(X))
            return np.stack([_hits(scores, y), raw])
        return np.stack([raw, raw])

    with parallel.one_thread_each:
        parts = parallel.run(block, range(0, len(judges.y), size))
    corrected, uncorrected = np.concatenate(parts, axis=1).mean(axis=1)
    return Quality(*corrected.tolist()), Quality(*uncorrected.tolist())


def _hits(scores: FloatArray, y: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """100 where the right class has the highest score, and its log-probability: (rows, 2)."""
    rows = np.arange(len(y))
    best = scores.argmax(axis=1)
    top = scores[rows, best]
    total = np.log(np.exp(scores - top[:, None]).sum(axis=1))
    logs = np.nan_to_num(scores[rows, y] - top - total, nan=_DIVERGED, neginf=_DIVERGED)
    return np.stack([100.0 * (best == y), logs], axis=1)


@cache
def warm_up(task: Task) -> None:
    """Compile every kernel, which is no part of any run."""
    X, y = task.X[:300], np.arange(min(300, task.X.shape[0])) % 50
    few = Task("warm-up", X, as_matrix(y, 50), Judges(X, y), Judges(X, y))
    for setting in (
        {}, {"shared": True}, {"objective": "negative_sampling"}, {"objective": "nce"},
        {"objective": "one_vs_each"}, {"noise": "frequency"},
    ):  # fmt: skip
        run(few, setting, 0.1, few.test)


def _estimator(setting: Setting) -> AdversarialSoftmax:
    given = {name: value for name, value in setting.items() if name not in ("tree", "max_rounds")}
    return AdversarialSoftmax(**{"verbose": False, **given})


def _noise(task: Task, setting: Setting) -> tuple[Noise, float]:
    """What negatives are drawn from, and in how many seconds it was fitted."""
    model = _estimator(setting)
    if model._noise_kind() != "tree":
        return model._new_noise(Part(task.X, task.Y)), 0.0
    tree, seconds = fitted_tree(task, setting.get("tree", "auto"), setting.get("max_rounds", 20))
    frequencies = Noise.by_frequency(task.Y).frequencies
    return Noise(float(model.frequency_share), frequencies, tree), seconds


@cache
def fitted_tree(task: Task, regularizer: Any, max_rounds: int = 20) -> tuple[NoiseTree, float]:
    """Fitted once for all runs that draw from it, and its seconds."""
    began = time.perf_counter()
    tree = NoiseTree(regularizer=regularizer, max_rounds=max_rounds, verbose=False)
    tree.fit(task.X, task.Y)
    return tree, time.perf_counter() - began


def _named(setting: Setting) -> str:
    return ", ".join(f"{name} {value}" for name, value in setting.items())
