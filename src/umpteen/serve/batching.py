"""Texts of concurrent requests, answered together: one thread, a bounded queue, no waiting.

While a batch is being answered, the texts of other requests gather; the next batch takes them.
So a lone request is answered at once, and a hundred at a time become a few batches.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

from umpteen.base import TopK
from umpteen.serve.refusals import busy
from umpteen.serve.settings import Settings
from umpteen.serve.snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class Asked:
    """Texts of one request, for one version of a model, and who waits for the answer."""

    snapshot: Snapshot
    texts: list[str]
    width: int
    answer: "asyncio.Future[TopK]"


class Batcher:
    """Answers texts in batches, in the order in which they came."""

    def __init__(
        self, settings: Settings, observe: Callable[[int], None] = lambda n_texts: None
    ) -> None:
        self._settings, self._observe = settings, observe
        self._queue: deque[Asked] = deque()
        self._n_waiting = 0
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "umpteen-answers")

    @property
    def n_waiting(self) -> int:
        """The number of texts in the queue."""
        return self._n_waiting

    async def ask(self, snapshot: Snapshot, texts: list[str], k: int) -> TopK:
        """Return at least the `k` best labels of each text; refuse at once if the queue is full."""
        if self._n_waiting and self._n_waiting + len(texts) > self._settings.max_waiting:
            raise busy()
        future: asyncio.Future[TopK] = asyncio.get_running_loop().create_future()
        self._queue.append(Asked(snapshot, texts, snapshot.width(k), future))
        self._n_waiting += len(texts)
        self._arrived.set()
        return await future

    async def run(self) -> None:
        """Answer until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            if self._settings.gather:
                await asyncio.sleep(self._settings.gather)
            batch = self._next()
            if not batch:
                continue
            n_texts = sum(len(asked.texts) for asked in batch)
            self._observe(n_texts)
            with suppress(Exception):  # each request gets its own error
                await loop.run_in_executor(self._thread, answer_together, batch, loop)

    def close(self) -> None:
        """Let the thread end after what it is doing."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> list[Asked]:
        """The requests that fit into the next batch; at least one."""
        batch: list[Asked] = []
        n_texts = 0
        while self._queue:
            asked = self._queue[0]
            if batch and n_texts + len(asked.texts) > self._settings.max_batch:
                return batch
            self._queue.popleft()
            self._n_waiting -= len(asked.texts)
            if not asked.answer.done():  # nobody waits any more
                batch.append(asked)
                n_texts += len(asked.texts)
        self._arrived.clear()
        return batch


def answer_together(batch: list[Asked], loop: asyncio.AbstractEventLoop) -> None:
    """Answer requests for the same version of a model with one prediction."""

    def kind(asked: Asked) -> tuple[int, int]:
        return id(asked.snapshot), asked.width

    for _, group in groupby(sorted(batch, key=kind), key=kind):
        asked_together = list(group)
        texts = [text for asked in asked_together for text in asked.texts]
        try:
            top = asked_together[0].snapshot.answer(texts, asked_together[0].width)
        except Exception as problem:
            loop.call_soon_threadsafe(_fail, asked_together, problem)
            continue
        loop.call_soon_threadsafe(_deliver, asked_together, top)


def _deliver(asked_together: list[Asked], top: TopK) -> None:
    first = 0
    for asked in asked_together:
        last = first + len(asked.texts)
        if not asked.answer.done():
            asked.answer.set_result(top[first:last])
        first = last


def _fail(asked_together: list[Asked], problem: Exception) -> None:
    for asked in asked_together:
        if not asked.answer.done():
            asked.answer.set_exception(problem)
