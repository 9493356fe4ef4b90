"""The server process: it loads models from folders and runs the application with uvicorn."""

import asyncio
import errno
import gc
import json
import logging
import signal
import socket
import sys
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from umpteen.errors import ParameterError
from umpteen.extras import require
from umpteen.serve.app import create_app
from umpteen.serve.models import Models, ServedModel, named_folders
from umpteen.serve.settings import Settings
from umpteen.serve.state import State, state_folder

_LOG = logging.getLogger("umpteen.serve")
_BACKLOG = 4096  # connections that wait to be accepted
_FILES = 65_536  # that may be open, connections included


def open_models(given: Iterable[str], settings: Settings, states: Path | None = None) -> Models:
    """Load models from folders, each `FOLDER` or `NAME=FOLDER`."""
    served = []
    for name, folder in named_folders(given).items():
        state = None
        if settings.learns:
            if not folder.is_dir():
                found = f"{folder} is a file" if folder.exists() else f"there is no folder {folder}"
                raise ParameterError(f"{found}: check the path, or make a model with umpteen fit")
            state = State(state_folder(folder, states), settings.keep_versions)
        served.append(ServedModel(name, folder, state))
    return Models(served)


def run(models: Models, host: str, port: int, settings: Settings) -> None:
    """Serve models until a signal; then finish running requests and refuse new ones."""
    uvicorn = require("uvicorn", "serve")
    from umpteen.serve.connections import options

    start_logging(settings.log_json)
    gc.collect()
    gc.freeze()  # models stay, so the garbage collector need not scan them
    _allow_many_files()
    listener = _listen(host, port)
    config = uvicorn.Config(
        create_app(models, settings), access_log=False, log_config=None, server_header=False,
        timeout_graceful_shutdown=int(settings.timeout) + 1, **options(),
    )  # fmt: skip
    address = f"[{host}]" if ":" in host else host
    at = f"http://{address}:{listener.getsockname()[1]}"
    _LOG.info("serving %s at %s (Ctrl-C stops)", ", ".join(models), at)
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(uvicorn.Server(config), models, listener))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as problem:
        advice = {
            errno.EADDRINUSE: "stop the process that uses it, or choose another port with --port",
            errno.EACCES: "choose another port with --port, such as 8000",
        }.get(problem.errno or 0, "check --host: it is an address or a name of this machine")
        why = (problem.strerror or str(problem)).partition(" (while ")[0]
        raise ParameterError(f"cannot listen on {host}:{port} ({why}): {advice}") from None


async def _serve(server: Any, models: Models, listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()

    def reload() -> None:
        for model in models.values():
            loop.run_in_executor(None, _reload, model)

    if hasattr(signal, "SIGHUP"):
        loop.add_signal_handler(signal.SIGHUP, reload)
    await server.serve(sockets=[listener])


def _reload(model: ServedModel) -> None:
    try:
        changed = model.reload()
    except Exception:
        _LOG.exception("%s: cannot be loaded, so the old version stays in use", model.name)
    else:
        _LOG.info("%s: %s", model.name, model.snapshot.version if changed else "unchanged")


def start_logging(as_json: bool) -> None:
    """Send log lines to stderr, each with the time."""
    timed = logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    usual = _JsonLines() if as_json else timed
    of_access = logging.Formatter("%(message)s")  # whole lines, with their times
    for name, level, formatter in (
        ("umpteen.serve", logging.INFO, usual),
        ("umpteen.serve.access", logging.INFO, of_access),
        ("uvicorn", logging.WARNING, usual),
    ):
        handler, logger = logging.StreamHandler(sys.stderr), logging.getLogger(name)
        handler.setFormatter(formatter)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


class _JsonLines(logging.Formatter):
    """A line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        content = {"time": time, "level": record.levelname, "message": super().format(record)}
        return json.dumps(content)


def _allow_many_files() -> None:
    """Connections are open files, of which a process may often have but 1,024."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
