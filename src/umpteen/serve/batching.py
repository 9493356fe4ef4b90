"""Texts of concurrent requests, answered together, from a bounded queue.

While a batch is being answered, the texts of other requests gather; the next batch takes them. If
several requests came together, the next ones probably will: then the first waits a moment for the
others. A lone client never waits. A second thread takes what gathers if it is half a batch, as
parts of an answer take one core only, or if the first is occupied by a request of very many texts.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from umpteen.base import TopK
from umpteen.serve.refusals import busy
from umpteen.serve.settings import Settings
from umpteen.serve.snapshot import Snapshot, Tags
from umpteen.tagger.thresholds import Threshold

_THREADS = 2


@dataclass(frozen=True, eq=False)
class Asked:
    """Texts of one request, for one version of a model, and who waits for the answer."""

    snapshot: Snapshot
    texts: list[str]
    k: int
    threshold: Threshold
    answer: "asyncio.Future[list[Tags]]"

    @property
    def kind(self) -> tuple[int, int]:
        """What requests have in common that one prediction can answer."""
        return id(self.snapshot), self.snapshot.width(self.k)

    @property
    def cut(self) -> tuple[int, str]:
        """What requests have in common that want as many labels."""
        return self.k, repr(self.threshold)


class Batcher:
    """Answers texts in batches, in the order in which they came."""

    def __init__(
        self, settings: Settings, observe: Callable[[int], None] = lambda n_texts: None
    ) -> None:
        self._settings, self._observe = settings, observe
        self._queue: deque[Asked] = deque()
        self._n_waiting = self._n_answering = self._n_running = 0
        self._came_together = False
        self._changed = asyncio.Event()
        self._threads = ThreadPoolExecutor(_THREADS, "umpteen-answers")

    @property
    def n_waiting(self) -> int:
        """The number of texts in the queue."""
        return self._n_waiting

    async def ask(
        self, snapshot: Snapshot, texts: list[str], k: int, threshold: Threshold
    ) -> list[Tags]:
        """Return the labels of each text; refuse at once if the queue is full."""
        if self._n_waiting and self._n_waiting + len(texts) > self._settings.max_waiting:
            raise busy()
        future: asyncio.Future[list[Tags]] = asyncio.get_running_loop().create_future()
        self._queue.append(Asked(snapshot, texts, k, threshold, future))
        self._n_waiting += len(texts)
        self._changed.set()
        return await future

    async def run(self) -> None:
        """Answer until cancelled."""
        while True:
            while not self._is_time():
                self._changed.clear()
                await self._changed.wait()
            if self._came_together and self._n_waiting < self._settings.max_batch:
                await asyncio.sleep(self._settings.gather)
            batch = self._next()
            self._came_together = len(batch) > 1
            if batch:
                self._start(batch)

    def close(self) -> None:
        """Let the threads end after what they are doing."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _is_time(self) -> bool:
        """Whether a batch can start."""
        most = self._settings.max_batch
        is_quiet = self._n_running == 0 or self._n_answering > most
        n_needed = 1 if is_quiet else max(1, most // 2)
        return self._n_running < _THREADS and self._n_waiting >= n_needed

    def _start(self, batch: list[Asked]) -> None:
        n_texts = sum(len(asked.texts) for asked in batch)
        self._observe(n_texts)
        self._count(1, n_texts)
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._threads, answer_together, batch, loop)
        done.add_done_callback(lambda _: self._count(-1, -n_texts))

    def _count(self, n_batches: int, n_texts: int) -> None:
        self._n_running += n_batches
        self._n_answering += n_texts
        self._changed.set()

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
        return batch


def answer_together(batch: list[Asked], loop: asyncio.AbstractEventLoop) -> None:
    """Answer requests for the same version of a model with one prediction."""
    for together in _groups(batch, lambda asked: asked.kind):
        try:
            top = _predicted(together)
        except Exception as problem:
            loop.call_soon_threadsafe(_fail, together, problem)
            continue
        ends = np.cumsum([len(asked.texts) for asked in together])
        rows = {
            asked: np.arange(end - len(asked.texts), end)
            for asked, end in zip(together, ends, strict=True)
        }
        for alike in _groups(together, lambda asked: asked.cut):
            part = top[np.concatenate([rows[asked] for asked in alike])]
            try:
                tags = alike[0].snapshot.tags(part, alike[0].k, alike[0].threshold)
            except Exception as problem:  # a threshold that cannot be reached
                loop.call_soon_threadsafe(_fail, alike, problem)
            else:
                loop.call_soon_threadsafe(_deliver, alike, tags)


def _predicted(together: list[Asked]) -> TopK:
    texts = [text for asked in together for text in asked.texts]
    snapshot = together[0].snapshot
    return snapshot.answer(texts, snapshot.width(together[0].k))


def _groups(batch: list[Asked], key: Callable[[Asked], Any]) -> list[list[Asked]]:
    """Requests that have something in common, in their order."""
    found: dict[Any, list[Asked]] = {}
    for asked in batch:
        found.setdefault(key(asked), []).append(asked)
    return list(found.values())


def _deliver(alike: list[Asked], tags: list[Tags]) -> None:
    rest = iter(tags)
    for asked in alike:
        own = list(islice(rest, len(asked.texts)))
        if not asked.answer.done():
            asked.answer.set_result(own)


def _fail(together: list[Asked], problem: Exception) -> None:
    for asked in together:
        if not asked.answer.done():
            asked.answer.set_exception(problem)
