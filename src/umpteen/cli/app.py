"""The commands, put together."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from umpteen import __version__
from umpteen.cli import errors
from umpteen.cli.convert import convert
from umpteen.cli.demo import demo
from umpteen.cli.describe import describe
from umpteen.cli.evaluate import evaluate, tune
from umpteen.cli.explain import explain
from umpteen.cli.fit import estimate, fit
from umpteen.cli.groups import assign
from umpteen.cli.labels import add_labels, remove_labels, update
from umpteen.cli.predict import predict
from umpteen.cli.recommend import recommend
from umpteen.cli.serve import serve

_COMMANDS = (
    fit, predict, evaluate, explain, describe, recommend, assign, convert, tune, add_labels,
    remove_labels, update, estimate, serve, demo,
)  # fmt: skip
_TRACEBACK = "--traceback"

app = typer.Typer(
    name="umpteen",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 96},
)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code; `--traceback` may be anywhere in it."""
    arguments = list(arguments) or ["--help"]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    if _TRACEBACK in arguments[:end]:
        arguments.remove(_TRACEBACK)
        os.environ[errors.DEBUG] = "1"
    _write_any_letter()
    try:
        app(arguments, prog_name="umpteen")
        code = 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 1
    except OSError as problem:  # no room for the text of --help
        errors.report(problem)
        code = 1
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return errors.leave_pipe()
    except OSError:
        errors.drop_stdout()
        return code or 1
    return code


def _write_any_letter() -> None:
    """Files and pipes get UTF-8 whatever the locale; nothing that cannot be shown is an error."""
    for stream in (sys.stdout, sys.stderr):
        encoding = stream.encoding if stream.isatty() else "utf-8"
        stream.reconfigure(encoding=encoding, errors="backslashreplace")  # type: ignore[union-attr]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"umpteen {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
    traceback: Annotated[
        bool, typer.Option(_TRACEBACK, help=f"Show where an error was raised ({errors.DEBUG}=1).")
    ] = False,
) -> None:
    """Find the right few labels for a text, out of thousands to millions.

    \b
    A file of texts and labels, train.jsonl:
      {"text": "How do I keep sourdough alive?", "labels": ["bread", "sourdough"]}
      {"text": "Which oil for deep frying?", "labels": ["oil", "frying"]}
    \b
    Train a model and label new texts:
      umpteen fit train.jsonl -o model/
      umpteen predict model/ new.jsonl
      echo "Why does my bread collapse?" | umpteen predict model/ -
    \b
    Files may be JSONL, CSV, TSV, fastText, Parquet, XMC or svmlight, also as .gz, .xz or .zst;
    - is stdin. On a terminal, commands print tables; in a pipe, they print JSON.
    """


for _command in _COMMANDS:
    app.command(_command.__name__.replace("_", "-"))(errors.guarded(_command))
