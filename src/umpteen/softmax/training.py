"""Train linear scores epoch by epoch, with the best ones kept, and go on after an interruption."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

from umpteen.kernels.sampled_softmax import Rules
from umpteen.progress import Bar
from umpteen.softmax.full import train_on_all_classes
from umpteen.softmax.noise import Noise
from umpteen.softmax.parts import Judgement
from umpteen.softmax.refreshing import refreshed
from umpteen.softmax.weights import DenseScores, SparseScores
from umpteen.storage import Given, Shape, Sizes, storable
from umpteen.validation import Features

_CHUNK = 16_384  # visits whose negatives are drawn at a time

IntArray = npt.NDArray[np.int32]
Model = DenseScores | SparseScores


@dataclass(frozen=True)
class Plan:
    """How long and how to learn."""

    rules: Rules
    full: bool  # all classes in every step: no negatives
    n_negatives: int
    shared: bool
    epochs: int
    max_seconds: float | None
    patience: int
    refresh_after: int | None
    n_jobs: int | None


@storable
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
    best_noise: Annotated[Noise, Given("features", "labels")] | None = None  # of `best`
    best_discount: float = 0.0
    best_score: float = -1.0

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: squares that only a model at rest has."""
        weights, squares = self.model.weights, self.model.weight_squares
        if squares.size != (weights.nnz if issparse(weights) else weights.size):
            yield f"has squares of shape {squares.shape}, too few to train on"

    def noted(self, judgement: Judgement) -> None:
        """Keep the model if none before had a better precision; the start is no epoch."""
        if judgement.precision >= self.best_score:
            self.best, self.best_noise = self.model.at_rest(), self.noise
            self.best_discount, self.best_score = judgement.discount, judgement.precision
        if self.epoch:
            self.validation_scores.append(judgement.precision)

    def is_over(self, plan: Plan) -> bool:
        """Whether all epochs are done, or no recent one was better."""
        scores = self.validation_scores
        stale = len(scores) - 1 - int(np.argmax(scores)) if scores else 0
        return self.epoch >= plan.epochs or stale >= plan.patience


@storable
@dataclass(eq=False)
class Kept:
    """A state on disk."""

    fingerprint: str
    state: Annotated[State, Given("features", "labels")]


def train(
    state: State,
    X: Features,
    Y: csr_matrix,
    plan: Plan,
    *,
    validate: Callable[[State], Judgement] | None = None,
    after_epoch: Callable[[State], object] | None = None,
    after_chunk: Callable[[State], object] = lambda state: None,
    bar: Bar,
) -> None:
    """Go through the samples until the plan is fulfilled; `state` is changed in place.

    Each epoch visits the samples in an order of its own, and its draws depend on the seed, the
    epoch and the sample only: an epoch that is done again has the same result, bit by bit.
    `after_chunk` is called more often than `after_epoch`, each some 16,000 visits. What is done in
    either does not count in `state.seconds`.
    """
    reduced = state.noise.reduce(X)
    rows = np.flatnonzero(np.diff(Y.indptr)).astype(np.int32)
    while not state.is_over(plan):
        began = time.perf_counter()
        if state.epoch == plan.refresh_after:
            state.noise = refreshed(state.noise, state.model, X, Y)
            reduced = state.noise.reduce(X)
        state.seconds += time.perf_counter() - began
        finished = _epoch(state, X, Y, rows, reduced, plan, after_chunk)
        state.epoch += 1
        if validate is not None:
            state.noted(validate(state))
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
    plan: Plan,
    after_chunk: Callable[[State], object],
) -> bool:
    """One visit of every row; False if time ran out before."""
    began = time.perf_counter()
    order, seed = np.random.SeedSequence([state.seed, state.epoch]).spawn(2)
    visited = np.random.default_rng(order).permutation(rows)
    size = max(1, _CHUNK // plan.rules.batch_size) * plan.rules.batch_size
    chunks = [visited[first : first + size] for first in range(0, len(visited), size)]
    drawn = state.noise.visits(
        reduced, Y, chunks, 0 if plan.full else plan.n_negatives,
        int(seed.generate_state(1, np.uint32)[0]), plan.n_jobs,
        shared_by=plan.rules.batch_size if plan.shared else 0,
    )  # fmt: skip
    for chunk, (labels, logs) in zip(chunks, drawn, strict=True):
        if plan.full:
            train_on_all_classes(state.model, plan.rules, X, chunk, labels[:, 0])
        else:
            share = (1.0 + state.epoch) ** -0.9  # Ruiz et al. 2018
            state.model.train(plan.rules, X, chunk, labels, logs, state.bounds, share)
        state.seconds += time.perf_counter() - began
        after_chunk(state)
        began = time.perf_counter()
        if plan.max_seconds is not None and state.seconds > plan.max_seconds:
            return False
    return True
