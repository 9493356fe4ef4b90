"""Run independent tasks side by side, with results in order.

Tasks run on threads (the kernels release the interpreter lock). A cluster engine takes the same
calls: `with parallel.engine(my_engine): clf.fit(X, Y)`, where `my_engine.map(function, items)`
yields results in the order of `items`.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from threadpoolctl import ThreadpoolController

from umpteen.errors import ParameterError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Anything that maps a function over items and yields the results in order."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield the results of `function` over `items`, in their order."""
        ...


_engine: ContextVar[Engine | None] = ContextVar("engine", default=None)


@contextmanager
def engine(chosen: Engine) -> Iterator[None]:
    """Send the tasks of the block to another engine than this process's threads."""
    token = _engine.set(chosen)
    try:
        yield
    finally:
        _engine.reset(token)


_most_threads: ContextVar[int | None] = ContextVar("most_threads", default=None)


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Use no more threads in the block, whatever `n_jobs` says.

    >>> with at_most(1):
    ...     n_threads(-1)
    1
    """
    token = _most_threads.set(threads)
    try:
        yield
    finally:
        _most_threads.reset(token)


class PerThread(Generic[Result]):
    """Scratch memory: `value` is made once per thread and used again by its next task.

    >>> scratch = PerThread(lambda: [0] * 3)
    >>> scratch.value is scratch.value
    True
    """

    def __init__(self, make: Callable[[], Result]) -> None:
        self._make, self._local = make, threading.local()

    @property
    def value(self) -> Result:
        """This thread's own."""
        if not hasattr(self._local, "value"):
            self._local.value = self._make()
        return self._local.value  # type: ignore[no-any-return]


class ProcessSetting(Generic[Result]):
    """A setting of the whole process that is changed while a block runs: `with setting: ...`.

    Blocks may overlap in any threads. The first block to start calls `change`, and the last one to
    end passes its result to `restore`. Each block receives this result, too.

    >>> log = []
    >>> setting = ProcessSetting(lambda: "as before", log.append)
    >>> with setting, setting as before:
    ...     (before, log)
    ('as before', [])
    >>> log
    ['as before']
    """

    def __init__(self, change: Callable[[], Result], restore: Callable[[Result], object]) -> None:
        self._change, self._restore = change, restore
        self._lock = threading.Lock()
        self._n_inside = 0
        self._before: Result

    def __enter__(self) -> Result:
        with self._lock:
            if self._n_inside == 0:
                self._before = self._change()
            self._n_inside += 1
            return self._before

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                self._restore(self._before)


# Matrix products of a block `with one_thread_each: ...` use one thread, not BLAS's own.
one_thread_each = ProcessSetting(
    lambda: ThreadpoolController().limit(limits=1, user_api="blas"),
    lambda limits: limits.restore_original_limits(),
)


def n_threads(n_jobs: int | None) -> int:
    """Return the threads meant by `n_jobs`: a number, or -1 (and None) for every usable core.

    >>> n_threads(3)
    3
    """
    if n_jobs is None or n_jobs == -1:
        n_jobs = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if n_jobs < 1:
        raise ParameterError(
            f"n_jobs={n_jobs} is not possible: use -1 for every core, or 1, 2, ..."
        )
    return min(n_jobs, _most_threads.get() or n_jobs)


def run(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    n_jobs: int | None = -1,
    done: Callable[[Item], object] | None = None,
) -> list[Result]:
    """Return the results of `function` over `items`, in the order of `items`.

    The first error in that order is raised and what has not started is dropped; so it is with
    Ctrl-C. `done(item)` is called as results arrive.

    >>> run(lambda item: item * item, [3, 1, 2])
    [9, 1, 4]
    """
    items = list(items)
    results = []
    with closing(stream(function, items, n_jobs=n_jobs)) as arriving:  # also when `done` fails
        for item, result in zip(items, arriving, strict=True):
            results.append(result)
            if done is not None:
                done(item)
    return results


def stream(
    function: Callable[[Item], Result], items: list[Item], *, n_jobs: int | None = -1
) -> Generator[Result, None, None]:
    """Yield results in the order of `items`, each as soon as it is there and asked for.

    >>> next(stream(lambda item: item * item, [3, 1, 2]))
    9
    """
    chosen = _engine.get()
    if chosen is not None:
        yield from chosen.map(function, items)
    elif n_threads(n_jobs) == 1 or len(items) <= 1:
        yield from map(function, items)
    else:
        yield from _on_threads(function, items, min(n_threads(n_jobs), len(items)))


def _on_threads(
    function: Callable[[Item], Result], items: list[Item], threads: int
) -> Iterator[Result]:
    # A window of waiting tasks bounds memory; order in = order out keeps the same bits.
    remaining = iter(items)
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[Result]] = deque()
    try:
        waiting.extend(pool.submit(function, item) for item in islice(remaining, 8 * threads))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(function, item) for item in islice(remaining, 1))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
