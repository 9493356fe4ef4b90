"""Error responses: a status, and a sentence that says why."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from umpteen.errors import UmpteenError

_SHOWN = 100  # characters of a path

Model = TypeVar("Model", bound=BaseModel)


class Refusal(HTTPException):
    """An error response with a status and the reason."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, reason, headers)

    def response(self) -> Response:
        """Return the response: JSON with one sentence in `detail`."""
        content = to_json({"detail": self.detail})
        return Response(content, self.status_code, self.headers, "application/json")


def busy() -> Refusal:
    """Return the error for requests that come while the queue is full."""
    reason = "the queue is full: try again in 1 s, or send fewer texts at once"
    return Refusal(429, reason, {"Retry-After": "1"})


def register(app: FastAPI) -> None:
    """Add handlers that turn every error into a response."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(UmpteenError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)


async def _http(request: Request, problem: Any) -> Response:
    return Refusal(problem.status_code, _reason(request, problem), problem.headers).response()


def _reason(request: Request, problem: Any) -> str:
    """Return the reason, in words if there are only those of the status."""
    path, method = request.url.path[:_SHOWN], request.method
    if problem.detail == "Not Found":
        return f"there is no {path}; /docs describes what there is"
    if problem.detail == "Method Not Allowed":
        allowed = (problem.headers or {}).get("Allow", "another method")
        return f"{path} takes {allowed}, not {method}; /docs describes what there is"
    return str(problem.detail)


async def _ours(request: Request, problem: Any) -> Response:
    return Refusal(422, str(problem)).response()


async def _invalid(request: Request, problem: Any) -> Response:
    return Refusal(422, in_words(problem.errors())).response()


def parsed(kind: type[Model], body: bytes) -> Model:
    """Return the content of a JSON body, or refuse it."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as problem:
        errors = problem.errors(include_input=False)
        is_json = errors[0]["type"] != "json_invalid"
        expected = "" if is_json else f"; expected a JSON object: {', '.join(kind.model_fields)}"
        raise Refusal(422, in_words(errors) + expected) from None


def in_words(errors: Sequence[Any]) -> str:
    """Return one sentence about the first errors that pydantic found.

    Values of the request are not repeated: they may be long, or invalid Unicode.

    >>> in_words([{"loc": ("body", "k"), "msg": "Input should be a valid integer"}])
    'k: Input should be a valid integer'
    """
    shown = [
        ": ".join(filter(None, [_place(error.get("loc", ())), str(error.get("msg", "is wrong"))]))
        for error in errors[:3]
    ]
    more = f" (and {len(errors) - 3:,} more)" if len(errors) > 3 else ""
    return "; ".join(shown) + more


def _place(loc: Sequence[Any]) -> str:
    names = [str(part) for part in loc if part not in ("body", "query", "path")]
    return ".".join(names).encode("utf-8", "replace").decode()
