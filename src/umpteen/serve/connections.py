"""Connections of uvicorn: limits on request headers, and responses in one piece."""

from asyncio import AbstractEventLoop, TimerHandle, Transport
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_LARGEST_HEAD = 64 * 1024  # bytes
_PATIENCE = 20.0  # seconds until the head of a request is there


class InOnePiece:
    """A transport that sends the head and the body of a response together.

    uvicorn writes them one after the other. Two calls of the system, and two packets that wake the
    client, took a fifth of the time of a small response.
    """

    def __init__(self, transport: Transport, loop: AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._waiting: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send data after what runs now, with whatever else is written until then."""
        if not self._waiting:
            self._loop.call_soon(self._send)
        self._waiting.append(data)

    def close(self) -> None:
        """Send what waits, and close the connection."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and not self._transport.is_closing():
            self._transport.write(b"".join(waiting))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class Connection(HttpToolsProtocol):
    """A connection that is closed if request headers take too long or are too large."""

    _timer: TimerHandle | None = None
    _n_head = 0
    _in_head = True

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for the first request, up to a limit."""
        super().connection_made(InOnePiece(transport, self.loop))  # type: ignore[arg-type]
        self._timer = self.loop.call_later(_PATIENCE, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes of request headers."""
        if self._in_head:
            self._n_head += len(data)
            if self._timer is None:  # of a later request
                self._timer = self.loop.call_later(_PATIENCE, self._give_up)
        super().data_received(data)
        if self._in_head and self._n_head > _LARGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The headers of the request are too large.")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the fields of a head; those after a body, which may be endless, are of no use."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the timer: the application limits the rest of the request."""
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Wait for the next request."""
        super().on_message_complete()
        self._in_head, self._n_head = True, 0

    def on_response_complete(self) -> None:
        """Close the connection if the rest of a refused request is still arriving, without end."""
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body:
            self.transport.close()

    def _give_up(self) -> None:
        self._timer = None
        if self._in_head and not self.transport.is_closing():
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def options() -> dict[str, Any]:
    """Return the options of uvicorn for connections."""
    return {"http": Connection, "ws": "none", "timeout_keep_alive": 75}
