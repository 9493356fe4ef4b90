"""Error messages: one line, with the options of the command line."""

import functools
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any, TextIO

import typer

DEBUG = "UMPTEEN_DEBUG"

_INTERRUPTED, _PIPE_CLOSED = 130, 141  # as shells count: 128 and the signal
_OPTIONS = {
    "text_field": "--text-column",
    "labels_field": "--labels-column",
    "group_field": "--group",
    "group_labels": "--group-labels",
    "label_texts": "--label-texts",
    "label_separator": "--label-separator",
    "zero_based": "--zero-based",
    "format": "--format",
    "max_memory": "--max-memory",
    "n_trees": "--trees",
    "n_jobs": "--jobs",
    "random_state": "--seed",
    "prune": "--prune",
    "metric": "--metric",
    "threshold": "--threshold",
    "overwrite": "--overwrite",
    "address": "--cluster",
    "k": "-k",
    "checkpoint": "--checkpoint",
    "language": "--language",
}
_PHRASES = {
    "overwrite=True": "--overwrite",
    "as model.save(path) makes it": "as `umpteen fit` makes it",
    "check the path, or save a model there first": "check the path, or make one: umpteen fit",
    "or None to leave words as they are": "or none to leave words as they are",
    "read it with umpteen.data.read": "leave out --stream",
    "tune_thresholds(...) first": "`umpteen tune` first",
    "where quotation marks are plain characters, use quoted=False": (
        'cells with quotation marks are written as "say ""hi"""'
    ),
}
_OPTION = re.compile(
    r"`(?P<quoted>{0})`|\b(?P<given>{0})=(?P<value>'[^']*'|[\w.]+)?|\b(?P<plain>{1})\b".format(
        "|".join(_OPTIONS), "|".join(name for name in _OPTIONS if "_" in name)
    )
)


class UsageError(Exception):
    """The command cannot work with these files; the message says what to do."""


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose errors become a line on stderr and an exit code."""

    @functools.wraps(command)
    def careful(*args: Any, **options: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                command(*args, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            raise typer.Exit(leave_pipe()) from None
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second one need not be tidy
            say("interrupted")
            raise typer.Exit(_INTERRUPTED) from None
        except Exception as error:
            report(error)
            raise typer.Exit(1) from None

    return careful


def leave_pipe() -> int:
    """Exit silently because the reader of the pipe is gone (`| head -1`)."""
    drop_stdout()
    return _PIPE_CLOSED


def drop_stdout() -> None:
    """Redirect stdout to /dev/null, so that unwritten output is not tried again at exit."""
    _drop(sys.stdout)


def say(message: str) -> None:
    """Print a line on stderr, unless it cannot be written."""
    try:
        print(f"umpteen: {message}", file=sys.stderr, flush=True)
    except OSError:
        _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def in_options(message: str) -> str:
    """Return a message of the library with the command line's names for its parameters.

    >>> in_options("no 'labels' among 'text', 'tags'; did you mean labels_field='tags'?")
    "no 'labels' among 'text', 'tags'; did you mean --labels-column 'tags'?"
    """
    for phrase, ours in _PHRASES.items():
        message = message.replace(phrase, ours)
    return _OPTION.sub(_option, message)


def _option(match: re.Match[str]) -> str:
    name = match["quoted"] or match["given"] or match["plain"]
    return " ".join(filter(None, [_OPTIONS[name], match["value"]]))


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"warning: {' '.join(in_options(str(message)).split())}")


def report(error: Exception) -> None:
    """Print the error, with a traceback if the debug variable is set."""
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    say(f"error: {_one_line(error)}")


def _one_line(error: Exception) -> str:
    message = in_options(" ".join(str(error).split()))
    if isinstance(error, UsageError) or _is_ours(error):
        return message
    if isinstance(error, MemoryError):
        return "not enough memory; `umpteen estimate` shows how much is needed"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'the output'}: {error.strerror}"
    return f"{type(error).__name__}: {message} (--traceback shows where)"


def _is_ours(error: Exception) -> bool:
    from umpteen.errors import UmpteenError

    return isinstance(error, UmpteenError)
