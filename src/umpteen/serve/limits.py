"""Limits on the size of requests, and on the time that they take."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from umpteen.serve.refusals import Refusal, busy
from umpteen.serve.security import header
from umpteen.serve.settings import Settings

_CLOSE = {"Connection": "close"}  # what is still being sent is not read
_BODIES = 25  # of the largest size, that may be in memory at once


class Limits:
    """Middleware that refuses bodies that are too large, and requests that take too long."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._n_bytes = 0  # of all bodies in memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, until it exceeds a limit."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(self, receive)
        started = False

        async def send_on(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            self._check_length(header(scope, b"content-length"))
            async with asyncio.timeout(self._settings.timeout):
                await self._app(scope, body.receive, send_on)
        except TimeoutError:
            if not started:
                await self._late(body).response()(scope, receive, send)
        except Refusal as refusal:
            if not started:
                await refusal.response()(scope, receive, send)
        finally:
            self._n_bytes -= body.n_bytes

    def take(self, n_bytes: int, body: "_Body") -> None:
        """Count bytes of a body; refuse it if this body or all bodies together are too large."""
        body.n_bytes += n_bytes
        self._n_bytes += n_bytes
        self._check_size(body.n_bytes)
        if self._n_bytes > _BODIES * self._settings.max_body:
            raise busy()

    def _check_length(self, length: str) -> None:
        if length.isdecimal() and len(length) < 20:
            self._check_size(int(length))

    def _check_size(self, n_bytes: int) -> None:
        most = self._settings.max_body
        if n_bytes > most:
            reason = f"the body exceeds the limit of {most:,} bytes: send fewer texts at once"
            raise Refusal(413, reason, _CLOSE)

    def _late(self, body: "_Body") -> Refusal:
        seconds = f"{self._settings.timeout:g} s"
        if not body.is_complete:
            return Refusal(408, f"the request did not arrive within {seconds}", _CLOSE)
        reason = f"the request took longer than {seconds}: try again later, or send fewer texts"
        return Refusal(503, reason, {"Retry-After": "1"})


async def whole_body(receive: Receive) -> bytes | None:
    """Return the body of a request, or None if the client went away."""
    pieces = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


class _Body:
    """The body of one request while it arrives."""

    def __init__(self, limits: Limits, receive: Receive) -> None:
        self._limits, self._receive = limits, receive
        self.n_bytes, self.is_complete = 0, False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._limits.take(len(message.get("body", b"")), self)
            self.is_complete = not message.get("more_body", False)
        return message
