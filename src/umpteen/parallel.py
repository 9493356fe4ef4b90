"""Run independent tasks side by side, with results in order.

Tasks run on threads (the kernels release the interpreter lock). Those of `map` and `stream` may
also run in other processes or on other machines: `with parallel.engine(my_engine): clf.fit(X, Y)`.
Therefore their function stands in a module, what all tasks need is handed over once, as `shared`,
and a task returns what it computed and never writes into what it was given. Those of `run` and
`run_ahead` are too small for that, and stay in this process.
"""

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

from threadpoolctl import ThreadpoolController

from umpteen.errors import ParameterError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Anything that runs tasks elsewhere and yields their results in order."""

    @property
    def width(self) -> int:
        """The number of tasks that run at the same time."""
        ...

    def map(
        self, function: Callable[..., Any], items: list[Any], shared: tuple[Any, ...]
    ) -> Generator[Any, None, None]:
        """Yield `function(item, *shared)` for each item, in order.

        Closing the generator cancels the tasks that are left. `shared` is handed over once.
        """
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

    It may go to other processes if `make` can, and has a value of its own there.

    >>> scratch = PerThread(lambda: [0] * 3)
    >>> scratch.value is scratch.value
    True
    """

    def __init__(self, make: Callable[[], Result]) -> None:
        self._make, self._local = make, threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return PerThread, (self._make,)

    @property
    def value(self) -> Result:
        """Return the value of this thread, which is made when it is first asked for."""
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


@lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:
    """Find libraries with threads of their own, which takes milliseconds, once per new module."""
    return ThreadpoolController()


# Matrix products of a block `with one_thread_each: ...` use one thread, not BLAS's own.
one_thread_each = ProcessSetting(
    lambda: _thread_pools(len(sys.modules)).limit(limits=1, user_api="blas"),
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


def width(n_jobs: int | None) -> int:
    """Return how many tasks of `map` run at the same time: on the block's engine, or on threads.

    >>> width(3)
    3
    """
    chosen = _engine.get()
    return n_threads(n_jobs) if chosen is None else chosen.width


def width_elsewhere() -> int:
    """Return how many tasks of `map` run at the same time on the block's engine; 0 on threads.

    >>> width_elsewhere()
    0
    """
    chosen = _engine.get()
    return 0 if chosen is None else chosen.width


def run(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    n_jobs: int | None = -1,
    done: Callable[[Item], object] | None = None,
) -> list[Result]:
    """Return the results of `function` over `items`, in the order of `items`, always on threads.

    The first error in that order is raised and what has not started is dropped; so it is with
    Ctrl-C. `done(item)` is called as results arrive.

    >>> run(lambda item: item * item, [3, 1, 2])
    [9, 1, 4]
    """
    items = list(items)
    return _collected(_locally(function, items, n_jobs), items, done)


def run_ahead(
    function: Callable[[Item], Result], items: list[Item], *, n_jobs: int | None = -1
) -> Generator[Result, None, None]:
    """Yield the results of `run` in order, each as soon as it is there and asked for.

    >>> next(run_ahead(lambda item: item * item, [3, 1, 2]))
    9
    """
    return _locally(function, items, n_jobs)


def map(  # noqa: A001
    function: Callable[..., Result],
    items: Iterable[Item],
    shared: tuple[Any, ...] = (),
    *,
    n_jobs: int | None = -1,
    done: Callable[[Item], object] | None = None,
) -> list[Result]:
    """Return `function(item, *shared)` for each item, in order: like `run`, but on any engine.

    >>> map(pow, [3, 1, 2], shared=(2,))
    [9, 1, 4]
    """
    items = list(items)
    return _collected(stream(function, items, shared, n_jobs=n_jobs), items, done)


def stream(
    function: Callable[..., Result],
    items: list[Item],
    shared: tuple[Any, ...] = (),
    *,
    n_jobs: int | None = -1,
) -> Generator[Result, None, None]:
    """Yield the results of `map` in order, each as soon as it is there and asked for.

    >>> next(stream(pow, [3, 1, 2], shared=(2,)))
    9
    """
    chosen = _engine.get()
    if chosen is not None and len(items) > 1:
        return chosen.map(function, items, shared)
    return _locally(lambda item: function(item, *shared), items, n_jobs)


def _collected(
    arriving: Generator[Result, None, None],
    items: list[Item],
    done: Callable[[Item], object] | None,
) -> list[Result]:
    results = []
    with closing(arriving):  # also when `done` fails
        for item, result in zip(items, arriving, strict=True):
            results.append(result)
            if done is not None:
                done(item)
    return results


def _locally(
    function: Callable[[Item], Result], items: list[Item], n_jobs: int | None
) -> Generator[Result, None, None]:
    threads = min(n_threads(n_jobs), len(items))
    if threads <= 1:
        for item in items:
            with _ctrl_c_of_kernels():
                result = function(item)
            yield result
    else:
        yield from _on_threads(function, items, threads)


def _on_threads(
    function: Callable[[Item], Result], items: list[Item], threads: int
) -> Iterator[Result]:
    # A window of waiting tasks bounds memory; order in = order out keeps the same bits.
    remaining = iter(items)
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[Result]] = deque()

    def submit(n_items: int) -> None:
        with _ctrl_c_later():
            waiting.extend(pool.submit(function, item) for item in islice(remaining, n_items))

    try:
        submit(8 * threads)
        while waiting:
            yield waiting.popleft().result()
            submit(1)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _ctrl_c_of_kernels() -> Iterator[None]:
    """Raise Ctrl-C as such: compiled code makes a `SystemError` of it, with it as the cause."""
    try:
        yield
    except SystemError as problem:
        cause: BaseException | None = problem
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__
        if cause is None:
            raise
        raise KeyboardInterrupt from None


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Deliver Ctrl-C after the block: it would leave locks that are Python code in a broken state.

    Only the main thread receives it.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: arrived.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if arrived:
            signal.raise_signal(arrived[0])
