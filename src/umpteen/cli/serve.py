"""`umpteen serve`."""

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from umpteen.cli.errors import UsageError, say

if TYPE_CHECKING:
    from umpteen.serve import Settings

READ_KEY, LEARN_KEY = "UMPTEEN_API_KEY", "UMPTEEN_LEARN_KEY"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL", help="A folder that `umpteen fit` made, or NAME=FOLDER."),
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 for a free one.")
    ] = 8000,
    no_learn: Annotated[
        bool, typer.Option("--no-learn", help="Accept no corrections, and write nothing.")
    ] = False,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder for corrections and versions.",
            show_default="MODEL.serve",
        ),
    ] = None,
    validation: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Labelled texts to check what is learned."),
    ] = None,
    learn_after: Annotated[
        int, typer.Option(min=1, metavar="N", help="Learn after N corrections, or ten minutes.")
    ] = 50,
    keep: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of versions to keep on disk.")
    ] = 5,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Return to the previous version, and exit.")
    ] = False,
    to: Annotated[
        str | None, typer.Option(metavar="VERSION", help="With --rollback: return to this version.")
    ] = None,
    export_corrections: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write corrections for `umpteen fit`, and exit."),
    ] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"Keys that may read, one per line; or {READ_KEY}."),
    ] = None,
    learn_key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"Keys that may also teach; or {LEARN_KEY}."),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="Host whose pages may send requests (CORS); repeatable."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Name of this server in URLs, or '*'; repeatable."),
    ] = None,
    max_body: Annotated[
        str, typer.Option(metavar="SIZE", help="Maximum size of a request body.")
    ] = "10MB",
    max_text: Annotated[
        int, typer.Option(min=1, metavar="N", help="Maximum length of a text, in characters.")
    ] = 1_000_000,
    max_waiting: Annotated[
        int, typer.Option(min=1, metavar="N", help="Maximum texts in the queue; beyond it, 429.")
    ] = 1024,
    timeout: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="Maximum time for a request.")
    ] = 30.0,
    log_json: Annotated[bool, typer.Option("--log-json", help="Write log lines as JSON.")] = False,
    log_texts: Annotated[
        bool, typer.Option("--log-texts", help="Write texts to the log as well.")
    ] = False,
) -> None:
    """Serve models over HTTP, with a page to review suggestions.

    \b
    Examples:
      umpteen serve model/
      umpteen serve recipes=models/7/ news=models/12/ --port 8080
      umpteen serve model/ --rollback
      umpteen serve model/ --export-corrections corrections.jsonl
    \b
    Open http://127.0.0.1:8000 for the page, and /docs for a description of all routes. Corrections
    are recorded in MODEL.serve/journal, and the model learns from them in the background.
    """
    from umpteen.limits import parse_size
    from umpteen.serve import Settings

    if validation is not None and len(models) > 1:
        raise UsageError("--validation works with one model only: start a server for each model")
    size = parse_size(max_body)
    if not size:
        raise UsageError(f"--max-body {max_body!r} is not a size; expected one such as 10MB")
    settings = Settings(
        max_body=int(size), max_text=max_text, max_waiting=max_waiting, timeout=timeout,
        read_keys=_keys(api_key_file, READ_KEY), learn_keys=_keys(learn_key_file, LEARN_KEY),
        hosts=_hosts(host, allow_host or []), origins=tuple(origin or ()),
        learns=not no_learn, learn_after=learn_after,
        validation=validation, keep_versions=keep, log_json=log_json, log_texts=log_texts,
    )  # fmt: skip
    if export_corrections is not None:
        _export(models, state, export_corrections)
    elif rollback:
        _roll_back(models, settings, state, to)
    else:
        _run(models, host, port, settings, state)


def _run(models: Any, host: str, port: int, settings: "Settings", state: Path | None) -> None:
    from umpteen.cli.models import note_compiling
    from umpteen.serve.running import open_models, run

    note_compiling(4)
    if host not in _LOOPBACK and not settings.read_keys:
        teaches = " and teach" if settings.learns and not settings.learn_keys else ""
        say(f"warning: anyone who reaches {host} may read{teaches}: set keys with --api-key-file")
    run(open_models(models, settings, state), host, port, settings)


def _roll_back(models: list[str], settings: "Settings", state: Path | None, to: str | None) -> None:
    from umpteen.serve.running import open_models

    if len(models) > 1:
        raise UsageError("--rollback works with one model at a time")
    (model,) = open_models(models, settings, state).values()
    before = model.snapshot.version
    say(f"{model.name}: rolled back to {model.roll_back(to).version} (from {before})")


def _export(models: list[str], state: Path | None, file: Path) -> None:
    from umpteen.serve.exporting import export
    from umpteen.serve.models import named_folders
    from umpteen.serve.state import state_folder

    if len(models) > 1:
        raise UsageError("--export-corrections works with one model at a time")
    (folder,) = named_folders(models).values()
    place = state_folder(folder, state)
    if not (place / "journal").is_dir():
        raise UsageError(f"there are no corrections in {place}: check the model, and --state")
    say(f"{file}: {export(place, file):,} corrections")


def _hosts(host: str, more: list[str]) -> tuple[str, ...]:
    """The names of this server: those of the machine only if others can reach it."""
    own = [] if host in _LOOPBACK else [socket.gethostname()]
    return tuple(name.lower().rstrip(".") for name in ("localhost", host, *own, *more))


def _keys(file: Path | None, variable: str) -> tuple[str, ...]:
    from umpteen.serve.security import read_keys

    if file is not None:
        return read_keys(file.read_text("utf-8"), str(file))
    given = os.environ.get(variable)
    return read_keys(given, variable) if given else ()
