"""Train linear scores epoch by epoch, with the best ones kept, and go on after an interruption."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from umpteen.kernels.sampled_softmax import Rules
from umpteen.progress import Bar
from umpteen.softmax.full import train_on_all_classes
from umpteen.softmax.noise import Noise
from umpteen.softmax.split import ValidationScore
from umpteen.softmax.weights import DenseScores, SparseScores
from umpteen.storage import Given, Shape, Sizes, storable
from umpteen.validation import Features

_CHUNK = 16_384  # visits whose negatives are drawn at a time

IntArray = npt.NDArray[np.int32]
Model = DenseScores | SparseScores


@dataclass(frozen=True)
class Schedule:
    """How to train, and for how long."""

    rules: Rules
    full: bool  # all classes in every step: no negatives
    n_negatives: int
    epochs: int
    max_seconds: float | None
    patience: int
    n_jobs: int | None


def _state_from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    state.pop("best_noise", None)


@storable(version=2, upgrades={1: _state_from_1})
@dataclass(eq=False)
class State:
    """All that a later epoch needs to know about earlier ones."""

    model: Annotated[Model, Given("features", "labels")]
    noise: Annotated[Noise, Given("features", "labels")]
    bounds: Annotated[npt.NDArray[np.float64], Shape("samples")]  # of augment-and-reduce
    seed: int
    epoch: int = 0
    seconds: float = 0.0
    validation_scores: list[float] = field(default_factory=list)
    best: Annotated[Model, Given("features", "labels")] | None = None
    best_discount: float = 0.0
    best_score: float = -1.0
    start_score: float = -1.0  # of the initial weights; -1 where they were not validated
    penalty_factor: float = 1.0  # of the regulariser
    rate_factor: float = 1.0  # of the learning rate

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: squares that only a model at rest has."""
        weights, squares = self.model.weights, self.model.weight_squares
        if squares.size != (weights.nnz if issparse(weights) else weights.size):
            yield f"has squares of shape {squares.shape}, too few to train on"

    def record(self, score: ValidationScore) -> None:
        """Keep the model if none before had a better precision; the start is no epoch.

        As long as no epoch is as good as the start, begin there again with smaller steps.
        """
        if score.precision >= self.best_score:
            self.best = self.model.compact()
            self.best_discount, self.best_score = score.discount, score.precision
        if self.epoch:
            self.validation_scores.append(score.precision)
        else:
            self.start_score = score.precision
        if self.epoch and self.start_is_best and self.best is not None:
            self.model = self.best.trainable()
            self.rate_factor /= 3

    @property
    def start_is_best(self) -> bool:
        """Return whether no epoch was as good as the initial weights."""
        return max(self.validation_scores, default=-1.0) < self.start_score

    def is_over(self, schedule: Schedule) -> bool:
        """Return whether all epochs are done, or no recent one was better."""
        scores = self.validation_scores
        stale = len(scores) - 1 - int(np.argmax(scores)) if scores else 0
        return self.epoch >= schedule.epochs or stale >= schedule.patience


@storable
@dataclass(eq=False)
class Checkpoint:
    """A state on disk, and the fingerprint of the training it belongs to."""

    fingerprint: str
    state: Annotated[State, Given("features", "labels")]


def train(
    state: State,
    X: Features,
    Y: csr_matrix,
    schedule: Schedule,
    *,
    validate: Callable[[State], ValidationScore] | None = None,
    after_epoch: Callable[[State], object] | None = None,
    bar: Bar,
) -> None:
    """Train epoch by epoch until the schedule ends; `state` is changed in place.

    Each epoch visits the samples in an order of its own, and its draws depend on the seed, the
    epoch and the sample only: an epoch that is done again has the same result, bit by bit.
    Validation and `after_epoch` do not count in `state.seconds`.
    """
    reduced = state.noise.reduce(X)
    rows = np.flatnonzero(np.diff(Y.indptr)).astype(np.int32)
    while not state.is_over(schedule):
        finished = _epoch(state, X, Y, rows, reduced, schedule)
        state.epoch += 1
        if validate is not None:
            state.record(validate(state))
        bar.advance(**({"P@1": state.validation_scores[-1]} if validate else {}))
        if not finished:
            break
        if after_epoch is not None:
            after_epoch(state)


def _epoch(
    state: State,
    X: Features,
    Y: csr_matrix,
    rows: IntArray,
    reduced: npt.NDArray[np.float32],
    schedule: Schedule,
) -> bool:
    """One visit of every row; False if time ran out before."""
    began = time.perf_counter()
    order, seed = np.random.SeedSequence([state.seed, state.epoch]).spawn(2)
    visited = np.random.default_rng(order).permutation(rows)
    size = max(1, _CHUNK // schedule.rules.batch_size) * schedule.rules.batch_size
    chunks = [visited[first : first + size] for first in range(0, len(visited), size)]
    drawn = state.noise.visits(
        reduced, Y, chunks, 0 if schedule.full else schedule.n_negatives,
        int(seed.generate_state(1, np.uint32)[0]), schedule.n_jobs,
    )  # fmt: skip
    rules = schedule.rules._replace(
        learning_rate=schedule.rules.learning_rate * state.rate_factor,
        regularizer=schedule.rules.regularizer * state.penalty_factor,
    )
    for chunk, (labels, logs) in zip(chunks, drawn, strict=True):
        if schedule.full:
            train_on_all_classes(state.model, rules, X, chunk, labels[:, 0])
        else:
            share = (1.0 + state.epoch) ** -0.9  # Ruiz et al. 2018
            state.model.train(rules, X, chunk, labels, logs, state.bounds, share)
        state.seconds += time.perf_counter() - began
        began = time.perf_counter()
        if schedule.max_seconds is not None and state.seconds > schedule.max_seconds:
            return False
    return True
