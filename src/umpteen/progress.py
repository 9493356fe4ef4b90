"""One progress bar for all long work: on stderr, with rate and time left."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

Verbose = bool | Literal["auto"]


class Bar:
    """Counts finished work; shows nothing by itself."""

    def advance(self, amount: float = 1.0, **fields: float) -> None:
        """Add finished work; `fields` (a loss, a metric) are shown after the bar."""


class _RichBar(Bar):
    def __init__(self, display: object, task: object) -> None:
        self._display, self._task = display, task

    def advance(self, amount: float = 1.0, **fields: float) -> None:
        text = "  ".join(f"{name} {value:.4g}" for name, value in fields.items())
        update = {"fields": text} if fields else {}
        self._display.update(self._task, advance=amount, **update)  # type: ignore[attr-defined]


@contextmanager
def progress_bar(description: str, total: float, verbose: Verbose = "auto") -> Iterator[Bar]:
    """Show a bar while the block runs: `"auto"` only on a terminal, `True` always, `False` never.

    A finished bar is erased with `"auto"` and stays with `True`.

    >>> with progress_bar("Counting", total=3, verbose=False) as bar:
    ...     for _ in range(3):
    ...         bar.advance()
    """
    if not _is_shown(verbose):
        yield Bar()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[fields]}"),
        TextColumn("{task.fields[compiling]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=verbose is not True) as display:
        task = display.add_task(description, total=total, fields="", compiling="")
        with _compiling.shown_by(lambda text: display.update(task, compiling=text)):
            yield _RichBar(display, task)


@contextmanager
def status_line(text: str) -> Iterator[None]:
    """Show a line on a terminal while the block runs, where nothing can be counted."""
    if not _is_shown("auto"):
        yield
        return
    _rewrite_line(text)
    try:
        yield
    finally:
        _rewrite_line("")


@contextmanager
def compile_line(n_kernels: int, verbose: Verbose = "auto") -> Iterator[None]:
    """Show on one line which kernels the block compiles; `verbose` as in `progress_bar`.

    `n_kernels` is the number of kernels that the work may compile. Progress bars that start inside
    the block or after it continue the count.

    >>> with compile_line(9, verbose=False):
    ...     pass
    """
    if not _is_shown(verbose):
        yield
        return
    _compiling.n_needed = n_kernels
    with _compiling.shown_by(_rewrite_line):
        yield


def _is_shown(verbose: Verbose) -> bool:
    return verbose is True or (verbose == "auto" and sys.stderr.isatty())


def _rewrite_line(text: str) -> None:
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()


class _Compiling:
    """Listens to numba's compile events and shows them in the most recently opened display."""

    def __init__(self) -> None:
        self.n_needed = 0
        self._lock = threading.Lock()
        self._draw: list[Callable[[str], object]] = []
        self._listener: Any = None
        self._n_compiled = self._n_open = 0  # a kernel has others inside; numba has one lock

    @contextmanager
    def shown_by(self, draw: Callable[[str], object]) -> Iterator[None]:
        """Let `draw` show what is compiled during the block, and "" when that is done."""
        from numba.core import event

        with self._lock:
            self._draw.append(draw)
            if self._listener is None:
                self._listener, self._n_open = _listener(self), 0
                event.register("numba:compile", self._listener)
        try:
            yield
        finally:
            with self._lock:
                self._draw.remove(draw)
                if not self._draw:
                    event.unregister("numba:compile", self._listener)
                    self._listener = None

    def begin(self, function: Any) -> None:
        """A function is about to be compiled."""
        self._n_open += 1
        if self._n_open == 1 and function.__module__.startswith("umpteen.kernels."):
            self._n_compiled += 1
            within = self._n_compiled <= self.n_needed
            count = f"{self._n_compiled} of up to {self.n_needed}" if within else self._n_compiled
            self._say(f"compiling kernels (once per machine): {count}")

    def end(self) -> None:
        """The last of those that began is compiled."""
        self._n_open = max(0, self._n_open - 1)  # it may have started before we listened
        if self._n_open == 0:
            self._say("")

    def _say(self, text: str) -> None:
        with self._lock:
            if self._draw:
                self._draw[-1](text)


def _listener(compiling: _Compiling) -> Any:
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, happened: Any) -> None:
            compiling.begin(happened.data["dispatcher"].py_func)

        def on_end(self, happened: Any) -> None:
            compiling.end()

    return Listener()


_compiling = _Compiling()
