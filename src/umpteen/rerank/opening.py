"""Requests that end: not later than a number of seconds, whatever the server does meanwhile."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib import request

_LONGEST = 24 * 3600.0  # seconds; a socket cannot wait for ever


class _NoRedirects(request.HTTPRedirectHandler):
    """The key goes to the server that was named, and to no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Deadline:
    """Connections that are shut down after some seconds.

    The timeout of a socket begins anew with each byte, so that a server which sends one from time
    to time, or endless heads of responses, would be waited for as long as it likes.
    """

    def __init__(self, seconds: float) -> None:
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._timer = threading.Timer(min(seconds, _LONGEST), self._end)
        self._timer.daemon = True
        self.is_over = False

    def connect(self, *args: Any, **options: Any) -> socket.socket:
        """Return a new connection, as `socket.create_connection` does."""
        made = socket.create_connection(*args, **options)
        with self._lock:
            self._sockets.append(made.dup())  # encryption takes the original
        if self.is_over:
            self._end()
        return made

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            for each in self._sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> "Deadline":
        self._timer.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._timer.cancel()
        with self._lock:
            for each in self._sockets:
                each.close()


@contextmanager
def opened(asked: request.Request, deadline: Deadline, timeout: float) -> Iterator[Any]:
    """Yield the response to a request, with the connections of a deadline."""

    class Http(request.HTTPHandler):
        def http_open(self, req: request.Request) -> Any:
            return self.do_open(_of(HTTPConnection, deadline), req)

    class Https(request.HTTPSHandler):
        def https_open(self, req: request.Request) -> Any:
            return self.do_open(_of(HTTPSConnection, deadline), req)

    opener = request.build_opener(_NoRedirects, Http, Https)
    with opener.open(asked, timeout=min(timeout, _LONGEST)) as response:
        yield response


def _of(kind: Any, deadline: Deadline) -> Any:
    def made(*args: Any, **options: Any) -> Any:
        connection = kind(*args, **options)
        connection._create_connection = deadline.connect
        return connection

    return made
