"""A progress bar on stderr, for long work on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress


@contextmanager
def progress_bar(description: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a bar while the block runs, and yield what counts a finished piece of work.

    >>> with progress_bar("Counting", total=2) as advance:
    ...     advance()
    """
    quiet = not sys.stderr.isatty()
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as shown:
        task = shown.add_task(description, total=total)
        yield lambda: shown.advance(task)
