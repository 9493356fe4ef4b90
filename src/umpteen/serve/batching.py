"""Batches of texts from concurrent requests, from a bounded queue.

While one batch is computed, the texts of other requests form the next one. A batch takes half of
the texts that wait, so that one half is computed while the responses to the other half are written
and the next requests are read. A second thread computes if at least 32 texts wait meanwhile, or if
the first is busy with a request of very many texts. If several requests arrived together, the next
ones probably will: then a batch waits a moment for more. A single client never waits.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from umpteen import parallel
from umpteen.base import TopK
from umpteen.serve.refusals import busy
from umpteen.serve.settings import Settings
from umpteen.serve.snapshot import Snapshot, Tags
from umpteen.tagger.thresholds import Threshold

_THREADS = 2
_FEW = 32  # texts that are not divided: computing them one by one takes longer
_MANY = 256  # texts that are worth the work to spread them over all cores


@dataclass(frozen=True, eq=False)
class Asked:
    """The texts of one request, for one version of a model, and the future for the answer."""

    snapshot: Snapshot
    texts: list[str]
    k: int
    threshold: Threshold
    answer: "asyncio.Future[list[Tags]]"

    @property
    def kind(self) -> tuple[int, int]:
        """A key that is equal for requests that one prediction can answer."""
        return id(self.snapshot), self.snapshot.width(self.k)

    @property
    def cut(self) -> tuple[int, str]:
        """A key that is equal for requests with the same `k` and threshold."""
        return self.k, repr(self.threshold)


class Batcher:
    """A queue that answers texts in batches, in order of arrival."""

    def __init__(
        self, settings: Settings, observe: Callable[[int], None] = lambda n_texts: None
    ) -> None:
        self._settings, self._observe = settings, observe
        self._queue: deque[Asked] = deque()
        self._n_waiting = self._n_answering = self._n_running = 0
        self._n_before = 1  # texts in the last batch
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
            if self._n_waiting < self._n_before // 2:
                await asyncio.sleep(self._settings.gather)
            batch = self._next()
            if batch:
                self._start(batch)

    def close(self) -> None:
        """Let the threads end after what they are doing."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _is_time(self) -> bool:
        """Whether a batch can start."""
        most = self._settings.max_batch
        is_quiet = self._n_running == 0 or self._n_answering > most
        n_needed = 1 if is_quiet else _FEW
        return self._n_running < _THREADS and self._n_waiting >= n_needed

    def _start(self, batch: list[Asked]) -> None:
        n_texts = self._n_before = sum(len(asked.texts) for asked in batch)
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
        n_texts, half = 0, max(_FEW, self._n_waiting // 2)
        most = min(half, self._settings.max_batch)
        while self._queue:
            asked = self._queue[0]
            if batch and n_texts + len(asked.texts) > most:
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
    width = snapshot.width(together[0].k)
    if len(texts) > _MANY:
        return snapshot.answer(texts, width)
    with parallel.at_most(1):  # takes less CPU in total, and other requests need the other cores
        return snapshot.answer(texts, width)


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
