"""When models learn: after a number of corrections, after some time, or on request."""

import asyncio
import json
import logging
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from umpteen.errors import UmpteenError
from umpteen.serve.learning import Outcome, nothing_to_learn
from umpteen.serve.models import ServedModel
from umpteen.serve.settings import Settings

_LOG = logging.getLogger("umpteen.serve")
_LOOK = 1.0  # seconds between looks at what is waiting
_AFTER_FAILURE = 60.0


class Teacher:
    """A scheduler that lets models learn, one at a time."""

    def __init__(self, models: Iterable[ServedModel], settings: Settings) -> None:
        self._settings = settings
        self._models = [model for model in models if model.state is not None]
        self._one_at_a_time = asyncio.Lock()
        self._running: dict[str, asyncio.Task[Outcome | None]] = {}
        self._waiting_since: dict[str, float] = {}

    async def run(self) -> None:
        """Let models learn when they are due, until cancelled."""
        while True:
            await asyncio.sleep(_LOOK)
            for model in self._models:
                if self._is_due(model):
                    self.start(model)

    def is_learning(self, model: ServedModel) -> bool:
        """Return whether a model is learning now."""
        return model.name in self._running

    def start(self, model: ServedModel) -> "asyncio.Task[Outcome | None]":
        """Return the task in which a model learns; its result is None if learning failed."""
        if model.name not in self._running:
            task = asyncio.create_task(self._teach(model))
            self._running[model.name] = task
            task.add_done_callback(lambda _: self._running.pop(model.name, None))
        return self._running[model.name]

    async def stop(self) -> None:
        """Stop learning; corrections that were not learned stay in the journal."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_due(self, model: ServedModel) -> bool:
        n_pending = model.state.n_pending(model.current) if model.state and model.learns else 0
        if n_pending == 0 or self.is_learning(model):
            self._waiting_since.pop(model.name, None)
            return False
        since = self._waiting_since.setdefault(model.name, time.monotonic())
        waited = time.monotonic() - since
        return waited > self._settings.learn_within or (
            waited >= 0 and n_pending >= self._settings.learn_after
        )

    async def _teach(self, model: ServedModel) -> Outcome | None:
        async with self._one_at_a_time:
            started_from = model.current
            if model.state is None or model.state.n_pending(started_from) == 0:
                return nothing_to_learn(started_from)
            adopted = False
            try:
                outcome = await self._in_child(model)
                if outcome is not None:
                    adopted = await asyncio.to_thread(model.adopt, outcome, started_from)
            except (OSError, UmpteenError):  # no room, say
                _LOG.exception("%s: what was learned cannot be used", model.name)
                outcome = None
            if outcome is None:
                self._waiting_since[model.name] = time.monotonic() + _AFTER_FAILURE
                return None
            _LOG.info(
                "%s: %d corrections, %s", model.name, outcome.corrections,
                "applied" if outcome.applied and adopted else outcome.reason or "set aside",
            )  # fmt: skip
            return outcome

    async def _in_child(self, model: ServedModel) -> Outcome | None:
        state = model.writable_state()
        asked = {
            "state": str(state.folder),
            "current": asdict(model.current),
            "last": state.journal.last_number,
            "validation": self._validation(),
        }
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "umpteen.serve.child", json.dumps(asked),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            printed = await child.stdout.read() if child.stdout else b""
            code = await child.wait()
        finally:
            if child.returncode is None:
                with suppress(ProcessLookupError):
                    child.kill()
                await child.wait()
        if code:
            _LOG.error("%s: learning failed (exit code %d)", model.name, code)
            return None
        return Outcome.of(json.loads(printed))

    def _validation(self) -> str | None:
        file: Path | None = self._settings.validation
        return None if file is None else str(file)
