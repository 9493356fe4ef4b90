"""The access log: one line for each request, without its texts."""

import asyncio
import json
import logging
import time
from datetime import UTC, datetime

from starlette.types import Scope

_LOG = logging.getLogger("umpteen.serve.access")
_PAUSE = 0.1  # seconds


class AccessLog:
    """Lines that are written together, ten times a second, as one at a time takes a lot longer."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._lines: list[str] = []

    def note(self, scope: Scope, status: int, seconds: float) -> None:
        """Add the line of a request."""
        if not _LOG.isEnabledFor(logging.INFO):
            return
        if not self._lines:
            asyncio.get_running_loop().call_later(_PAUSE, self.write)
        self._lines.append(self._line(scope, status, 1000 * seconds))

    def write(self) -> None:
        """Write the lines that wait."""
        lines, self._lines = self._lines, []
        if lines:
            _LOG.info("%s", "\n".join(lines))

    def _line(self, scope: Scope, status: int, milliseconds: float) -> str:
        client = (scope.get("client") or "-")[0]
        path = json.dumps(scope["path"])[1:-1]  # no line breaks
        if not self._as_json:
            now = time.strftime("%Y-%m-%dT%H:%M:%S")
            return f"{now} {scope['method']} {path} {status} {milliseconds:.1f} ms {client}"
        return json.dumps({
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": "INFO",
            "method": scope["method"], "path": path, "status": status,
            "ms": round(milliseconds, 1), "client": client,
        })  # fmt: skip
