"""The training loop."""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from umpteen.errors import FeaturesError, ParameterError
from umpteen.neural.checkpoint import Keeper
from umpteen.neural.gradients import average_gradients
from umpteen.neural.optimizers import clip_gradients, rate_factor, set_rate
from umpteen.neural.run import Run
from umpteen.progress import Bar


class Batches(Protocol):
    """The samples that a network learns from."""

    def n_batches(self, size: int) -> int: ...
    def batches(self, epoch: int, settings: Any) -> list[Any]: ...
    def batch(self, rows: Any) -> tuple[Any, Any]: ...
    def precision(self) -> AbstractContextManager[Any]: ...


class Scorer(Protocol):
    """A measure of how good a network is on the validation split."""

    def score(self, network: Any) -> float: ...


@dataclass(frozen=True)
class Settings:
    """The settings of the loop; `NetworkRecipe` says what the names mean."""

    epochs: int
    max_seconds: float | None
    batch_size: int
    learning_rate: float
    schedule: str
    warmup: float
    clip: float | None
    averaging: float
    patience: int
    seed: int


def settings_of(model: Any, n_samples: int, seed: int) -> Settings:
    """Return the settings of a `NeuralClassifier`, from its parameters and its recipe."""
    recipe, batch_size = model._used_recipe(), model.batch_size
    if batch_size == "auto":
        batch_size = min(256, max(8, n_samples // 32))
    return Settings(
        epochs=model.epochs, max_seconds=recipe.max_seconds, batch_size=batch_size,
        learning_rate=model.learning_rate, schedule=recipe.schedule, warmup=recipe.warmup,
        clip=recipe.clip, averaging=recipe.averaging, patience=recipe.patience, seed=seed,
    )  # fmt: skip


def train(
    run: Run,
    samples: Batches,
    validation: Scorer | None,
    settings: Settings,
    keeper: Keeper,
    bar: Bar,
    tell: Callable[[Run], None] = lambda _: None,
) -> None:
    """Train until the epochs, the time or the patience are over.

    After each epoch `tell` may look at the run.

    All that decides about the next step is in `run` and the random numbers, which `keeper` writes
    down: a run that is continued ends in the same bits.
    """
    run.plan(settings.epochs, settings.averaging)
    now = run.counters
    n_batches = samples.n_batches(settings.batch_size)
    bar.advance(now.epoch * n_batches + now.batch)
    started = time.monotonic() - now.seconds
    while not now.finished:
        run.network.train()
        late = False
        for rows in samples.batches(now.epoch, settings)[now.batch :]:
            step = now.epoch * n_batches + now.batch
            factor = rate_factor(
                step, settings.epochs * n_batches, settings.schedule, settings.warmup
            )
            set_rate(run.optimizers, settings.learning_rate * factor)
            with samples.precision():
                loss = _loss(run, samples.batch(rows), settings)
            _learn(run, loss, settings)
            now.batch, now.seconds = now.batch + 1, time.monotonic() - started
            bar.advance(1, loss=now.loss_sum / now.batch, **_shown(now.scores))
            late = _is_late(run, settings)
            if late:
                break
            keeper.save_if_due(run)
        _end_epoch(run, validation, settings, late)
        tell(run)
        keeper.save_if_due(run)
    keeper.save(run)
    run.settle()


def _loss(run: Run, batch: tuple[Any, Any], settings: Settings) -> Tensor:
    try:
        loss: Tensor = run.network.loss(*batch)
    except FeaturesError as error:  # inputs were checked: it is the encoder that gave them
        raise _diverged(str(error).partition(":")[0], run, settings) from error
    return loss


def _learn(run: Run, loss: Tensor, settings: Settings) -> None:
    """One step of all optimizers."""
    value = loss.item()
    if not math.isfinite(value):
        raise _diverged(f"the loss is {value}", run, settings)
    for optimizer in run.optimizers:
        optimizer.zero_grad()
    loss.backward()
    common, sharded = run.parameters()
    average_gradients(common, run.ranks)
    if settings.clip is not None:
        clip_gradients(common, settings.clip, sharded, run.ranks)
    for optimizer in run.optimizers:
        optimizer.step()
    run.counters.loss_sum += value


def _end_epoch(run: Run, validation: Scorer | None, settings: Settings, late: bool) -> None:
    """Validate the weights, keep the best, and decide whether this was the last epoch."""
    now = run.counters
    finite = all(bool(torch.isfinite(each).all()) for each in run.network.parameters())
    if run.ranks.sum(not finite):
        raise _diverged("weights are not finite", run, settings)
    now.losses.append(now.loss_sum / now.batch)
    if settings.averaging and now.epoch >= (1 - settings.averaging) * settings.epochs - 1e-9:
        run.add_to_average()
    run.share_buffers()
    if validation is not None:
        with run.averaged():
            now.scores.append(validation.score(run.network))
            if now.scores[-1] >= max(now.scores):  # the later of two equal ones
                run.keep_as_best()
        now.best_epoch = now.scores.index(max(now.scores))
    impatient = validation is not None and now.epoch - now.best_epoch >= settings.patience
    now.epoch, now.batch, now.loss_sum = now.epoch + 1, 0, 0.0
    now.finished = late or impatient or now.epoch >= settings.epochs


def _is_late(run: Run, settings: Settings) -> bool:
    if settings.max_seconds is None:
        return False
    return run.ranks.first(run.counters.seconds) > settings.max_seconds


def _shown(scores: list[float]) -> dict[str, float]:
    return {"validation": scores[-1]} if scores else {}


def _diverged(what: str, run: Run, settings: Settings) -> ParameterError:
    now = run.counters
    return ParameterError(
        f"training diverged: {what} in epoch {now.epoch + 1}, batch {now.batch + 1}, with "
        f"learning_rate={settings.learning_rate:g}; use a tenth of that"
    )
