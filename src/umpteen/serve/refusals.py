"""Answers to requests that cannot be served: a status, and a sentence that says why."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException

from umpteen.errors import UmpteenError

Model = TypeVar("Model", bound=BaseModel)


class Refusal(HTTPException):
    """What was asked for is not possible, and why."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, reason, headers)

    def response(self) -> Response:
        """Return the answer: JSON with one sentence, `detail`."""
        content = to_json({"detail": self.detail})
        return Response(content, self.status_code, self.headers, "application/json")


def busy(seconds: int = 1) -> Refusal:
    """Return what is answered while the queue is full."""
    reason = f"the queue is full: ask again in {seconds} s, or send fewer texts at a time"
    return Refusal(429, reason, {"Retry-After": str(seconds)})


def register(app: FastAPI) -> None:
    """Give every error its answer."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(UmpteenError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)


async def _http(request: Request, problem: Any) -> Response:
    return Refusal(problem.status_code, str(problem.detail), problem.headers).response()


async def _ours(request: Request, problem: Any) -> Response:
    return Refusal(422, str(problem)).response()


async def _invalid(request: Request, problem: Any) -> Response:
    return Refusal(422, in_words(problem.errors())).response()


def parsed(kind: type[Model], body: bytes) -> Model:
    """Return what a body in JSON says, or refuse it."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as problem:
        raise Refusal(422, in_words(problem.errors(include_input=False))) from None


def in_words(errors: Sequence[Any]) -> str:
    """Return one sentence about the first errors that pydantic found.

    Values that were sent are not repeated: they may be long, or no valid Unicode.

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
