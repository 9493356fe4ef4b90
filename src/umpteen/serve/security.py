"""Who may read and who may teach: names of this server, API keys, and pages of other hosts."""

import hmac
import re
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from umpteen.errors import ParameterError
from umpteen.serve.refusals import Refusal
from umpteen.serve.settings import Settings

_HEALTH = ("/livez", "/readyz")
_OPEN = (*_HEALTH, "/health", "/", "/docs", "/openapi.json")
_OPEN_FOLDERS = ("/page/",)
_TEACHING = ("learn", "apply", "reload", "rollback", "webhook")  # the last part of a path
_SHORTEST = 8
_LONGEST_HOST = 300  # names have 253 characters at most, and a port may follow
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\s:/@\[\]]+)(:\d*)?", re.IGNORECASE)
EVERY_HOST = "*"


class Gate:
    """Middleware that refuses requests for another host, and requests without a valid key."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if its key allows it."""
        if scope["type"] == "http":
            refusal = self._refusal(own_path(scope), scope)
            if refusal is not None:
                await refusal.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, path: str, scope: Scope) -> Refusal | None:
        host = header(scope, b"host")
        if path not in _HEALTH and not is_own_host(host, self._settings.hosts):
            name = host[:100].encode("ascii", "replace").decode()
            return Refusal(421, f"this server is not {name!r}: allow the name with --allow-host")
        if path in _OPEN or path.startswith(_OPEN_FOLDERS):
            return None
        # Starlette's routes end in $, which a line break may follow
        teaches = path.rstrip("/\n").rpartition("/")[2] in _TEACHING
        if teaches and self._is_foreign(Headers(scope=scope)):
            return Refusal(403, "pages of another host may not teach: allow the host with --origin")
        readers, teachers = self._settings.read_keys, self._settings.learn_keys
        if not readers and not teachers:
            return None
        key = _key(Headers(scope=scope))
        may_teach = is_one_of(key, teachers) if teachers else is_one_of(key, readers) or not readers
        may_read = not readers or is_one_of(key, readers) or may_teach
        if may_teach or (may_read and not teaches):
            return None
        if not key:
            reason = "this needs an API key: send the header Authorization: Bearer KEY"
            return Refusal(401, reason, {"WWW-Authenticate": "Bearer"})
        return Refusal(403, "this API key may not do that: ask the operator for another one")

    def _is_foreign(self, headers: Headers) -> bool:
        """Whether a browser sends this for a page of another host, which no one allowed."""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None:
            is_cross = site not in ("same-origin", "none")
        else:  # browsers send it only to https and to the machine itself
            is_cross = origin is not None and origin.partition("://")[2] != headers.get("host")
        return is_cross and origin not in self._settings.origins


def own_path(scope: Scope) -> str:
    """Return the path that routes are found by, without that of an application around this one.

    >>> own_path({"path": "/page/v1/books", "root_path": "/page"})
    '/v1/books'
    """
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and f"{path}/".startswith(f"{root}/") else path


def header(scope: Scope, name: bytes) -> str:
    """Return the first header with a name, or nothing; quicker than `Headers`."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""


def is_own_host(given: str, allowed: tuple[str, ...]) -> bool:
    """Return whether a `Host` header is an allowed name or any address; without one, it is.

    A page can let the name of its own host point to this machine (DNS rebinding). The browser then
    takes this server for that host, but it still sends the name, never an address.

    >>> [is_own_host(host, ("localhost",)) for host in ("LOCALHOST:8000", "[::1]", "evil.example")]
    [True, True, False]
    """
    if not given or EVERY_HOST in allowed:
        return True
    return len(given) <= _LONGEST_HOST and _is_allowed(given, allowed)


@lru_cache(maxsize=256)  # most requests name the same host
def _is_allowed(given: str, allowed: tuple[str, ...]) -> bool:
    found = _HOST.fullmatch(given)
    name = found[1].lower().rstrip(".") if found else ""
    return bool(name) and (name in allowed or _is_address(name.strip("[]")))


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_one_of(key: str, keys: Iterable[str]) -> bool:
    """Return whether a key is one of the keys, in constant time."""
    given = key.encode("utf-8", "replace")
    same = [hmac.compare_digest(given, one.encode()) for one in keys]  # all of them, always
    return any(same)


def read_keys(text: str, source: str) -> tuple[str, ...]:
    """Return the keys in a text, one per line.

    >>> read_keys("# of the page\\ncorrect-horse\\n", "keys.txt")
    ('correct-horse',)
    """
    lines = (line.strip() for line in text.splitlines())
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    if not keys or min(map(len, keys)) < _SHORTEST:
        raise ParameterError(
            f"{source} has no key, or a key that is too short; expected one key per line, with at "
            f"least {_SHORTEST} characters each"
        )
    return keys


def _key(headers: Headers) -> str:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else str(headers.get("x-api-key", ""))
