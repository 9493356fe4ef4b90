"""The routes that change a model: learn, apply, reload and rollback."""

import asyncio
from typing import Any

from fastapi import APIRouter, Response

from umpteen.errors import UmpteenError
from umpteen.serve.journal import Correction
from umpteen.serve.models import ServedModel
from umpteen.serve.refusals import Refusal
from umpteen.serve.schemas import LearnRequest, Recorded, RollbackRequest
from umpteen.serve.server import Server, answer

_PATIENCE = 0.8  # of the time limit, for learning to end while someone waits


def learn_routes(server: Server) -> APIRouter:
    """Return the routes that change a model."""
    router, models = APIRouter(tags=["learning"]), server.models

    @router.post("/v1/{model}/learn", response_model=Recorded, summary="Record corrections")
    async def learn(model: str, asked: LearnRequest) -> Response:
        corrections = [
            Correction(one.text, list(dict.fromkeys(one.labels)), one.suggested, one.id)
            for one in asked.items
        ]
        return answer({"recorded": await server.record(models[model], corrections)})

    @router.post("/v1/{model}/apply", summary="Learn from the corrections now")
    async def apply(model: str) -> Response:
        served = models[model]
        served.writable_state()
        task = server.teacher.start(served)
        await asyncio.wait([task], timeout=_PATIENCE * server.settings.timeout)
        if not task.done():
            return answer({"running": True}, 202)
        outcome = task.result()
        if outcome is None:
            raise Refusal(500, "learning failed: see the log of the server")
        return answer(
            {
                "running": False,
                "applied": outcome.applied,
                "reason": outcome.reason,
                "corrections": outcome.corrections,
                "version": served.snapshot.version,
            }
        )

    @router.post("/v1/{model}/reload", summary="Load the model again if its folder has changed")
    async def reload(model: str) -> Response:
        served = models[model]
        changed = await _changing(served.reload)
        return answer({"changed": changed, "version": served.snapshot.version})

    @router.post("/v1/{model}/rollback", summary="Return to an earlier version")
    async def rollback(model: str, asked: RollbackRequest | None = None) -> Response:
        served: ServedModel = models[model]
        wanted = None if asked is None else asked.version
        await _changing(served.roll_back, wanted)
        return answer({"version": served.snapshot.version})

    return router


async def _changing(function: Any, *arguments: Any) -> Any:
    """Change a model on a thread; an error leaves the old one, and names no path."""
    try:
        return await asyncio.to_thread(function, *arguments)
    except (UmpteenError, OSError) as problem:
        raise _conflict(problem) from problem


def _conflict(problem: Exception) -> Refusal:
    from umpteen.errors import ParameterError

    if isinstance(problem, ParameterError):
        return Refusal(409, str(problem))
    kind = type(problem).__name__
    return Refusal(
        409, f"the model cannot be loaded ({kind}), so the old one stays in use: see the log"
    )
