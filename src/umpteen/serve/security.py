"""API keys: who may read and who may teach."""

import hmac
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from umpteen.errors import ParameterError
from umpteen.serve.refusals import Refusal
from umpteen.serve.settings import Settings

_OPEN = ("/livez", "/readyz", "/health", "/", "/docs", "/openapi.json")
_OPEN_FOLDERS = ("/page/",)
_TEACHING = ("learn", "apply", "reload", "rollback", "webhook")  # the last part of a path
_SHORTEST = 8


class Keys:
    """Middleware that refuses requests without a valid key: `Authorization: Bearer KEY`."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if its key allows it."""
        if scope["type"] == "http":
            refusal = self._refusal(scope["path"], Headers(scope=scope))
            if refusal is not None:
                await refusal.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, path: str, headers: Headers) -> Refusal | None:
        if path in _OPEN or path.startswith(_OPEN_FOLDERS):
            return None
        # Starlette's routes end in $, which a line break may follow
        teaches = path.rstrip("/\n").rpartition("/")[2] in _TEACHING
        if teaches and self._is_foreign(headers):
            return Refusal(403, "pages of another host may not teach: allow the host with --origin")
        readers, teachers = self._settings.read_keys, self._settings.learn_keys
        key = _key(headers)
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
