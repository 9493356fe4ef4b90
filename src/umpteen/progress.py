"""One progress bar for all long work: on stderr, with rate and time left."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Verbose = bool | Literal["auto"]


class Bar:
    """Counts finished work; draws nothing by itself."""

    def advance(self, amount: float = 1.0, **fields: float) -> None:
        """Add finished work; `fields` (a loss, a metric) are shown beside the bar."""


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

    >>> with progress_bar("Counting", total=3, verbose=False) as bar:
    ...     for _ in range(3):
    ...         bar.advance()
    """
    if verbose is False or (verbose == "auto" and not sys.stderr.isatty()):
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
    )
    with Progress(*columns, console=Console(stderr=True)) as display:
        yield _RichBar(display, display.add_task(description, total=total, fields=""))
