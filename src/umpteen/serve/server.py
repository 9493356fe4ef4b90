"""What all routes share: the models, the settings and the worker threads."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from fastapi import FastAPI, Response
from pydantic_core import to_json

from umpteen.serve.access_log import AccessLog
from umpteen.serve.batching import Batcher
from umpteen.serve.journal import Correction
from umpteen.serve.metrics import Metrics
from umpteen.serve.models import Models, ServedModel
from umpteen.serve.refusals import Refusal, busy
from umpteen.serve.settings import Settings
from umpteen.serve.snapshot import Snapshot, Tags
from umpteen.serve.teacher import Teacher
from umpteen.tagger.thresholds import Threshold

_LOG = logging.getLogger("umpteen.serve")
_MOST_ASIDE = 16  # explanations and searches that may wait
_NO_ROOM = "the server cannot write to its disk: no corrections were recorded"

Result = TypeVar("Result")


class Server:
    """The server behind the routes: it predicts, records and learns, within the limits."""

    def __init__(self, models: Models, settings: Settings) -> None:
        self.models, self.settings = models, settings
        self.metrics = Metrics(models, lambda: self.batcher.n_waiting)
        self.batcher = Batcher(settings, self.metrics.batch.observe)
        self.teacher = Teacher(models.values(), settings)
        self.access_log = AccessLog(settings.log_json)
        self.is_ready = False
        self._aside = ThreadPoolExecutor(1, "umpteen-aside")
        self._n_aside = 0

    async def suggest(
        self, snapshot: Snapshot, texts: list[str], k: int, threshold: Threshold
    ) -> list[Tags]:
        """Return names and probabilities for each text, as `Tagger.predict` does."""
        self.check_texts(texts)
        if not texts:
            return []
        if self.settings.log_texts:
            _LOG.info("%s: %s", snapshot.name, json.dumps(texts))
        found = await self.batcher.ask(snapshot, texts, k, threshold)
        self.metrics.texts.labels(snapshot.name).inc(len(texts))
        return found

    async def record(self, model: ServedModel, corrections: list[Correction]) -> int:
        """Write corrections to the journal of a model; afterwards they are on disk."""
        self.check_texts([one.text for one in corrections])
        journal, version = model.writable_state().journal, model.snapshot.version
        try:
            return await asyncio.to_thread(journal.append, corrections, version)
        except OSError:
            _LOG.exception("%s: corrections cannot be written", model.name)
            raise Refusal(503, _NO_ROOM, {"Retry-After": "60"}) from None

    def check_texts(self, texts: list[str]) -> None:
        """Refuse too many texts, and texts that are too long."""
        most, longest = self.settings.max_texts, self.settings.max_text
        if len(texts) > most:
            raise Refusal(413, f"{len(texts):,} texts are too many: send at most {most:,} at once")
        for number, text in enumerate(texts):
            if len(text) > longest:
                reason = f"text {number} has {len(text):,} characters: send at most {longest:,}"
                raise Refusal(413, reason)

    async def aside(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run other work on a separate thread; refuse if too many calls wait for it."""
        if self._n_aside >= _MOST_ASIDE:
            raise busy()
        self._n_aside += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._aside, function, *arguments)
        finally:
            self._n_aside -= 1

    @asynccontextmanager
    async def running(self, app: FastAPI) -> AsyncIterator[None]:
        """Answer requests inside the `with` block."""
        tasks = [asyncio.create_task(one) for one in (self.batcher.run(), self.teacher.run())]
        self.is_ready = True
        try:
            yield
        finally:
            self.is_ready = False
            await self.teacher.stop()
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            self.batcher.close()
            self._aside.shutdown(wait=False, cancel_futures=True)
            self.access_log.write()


def answer(content: Any, status: int = 200) -> Response:
    """Return a JSON response."""
    return Response(to_json(content), status, media_type="application/json")
