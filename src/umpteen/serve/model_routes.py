"""The routes that read a model: description, suggestions, explanations, labels."""

import re
from typing import Any

from fastapi import APIRouter, Query, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from umpteen.errors import UmpteenError
from umpteen.serve.explaining import explain
from umpteen.serve.limits import whole_body
from umpteen.serve.models import ServedModel
from umpteen.serve.refusals import Refusal, parsed
from umpteen.serve.schemas import (
    ExplainRequest,
    Explanation,
    FoundLabels,
    ModelInfo,
    ModelList,
    Suggestions,
    SuggestRequest,
)
from umpteen.serve.server import Server, answer
from umpteen.serve.snapshot import Snapshot

_SUGGEST = re.compile(r"/v1/([^/\n]+)/suggest")


class QuickSuggest:
    """Middleware that answers requests for suggestions itself, as the route below does.

    These are most of the requests, and routing them through FastAPI takes longer than to read the
    request and to write the response.
    """

    path = "/v1/{model}/suggest"  # for the metrics

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app, self._server = app, server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for suggestions, and pass any other on."""
        found = _SUGGEST.fullmatch(scope.get("path", "")) if scope.get("method") == "POST" else None
        if found is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = self
        body = await whole_body(receive)
        if body is None:
            return
        try:
            response = await suggest(self._server, found[1], parsed(SuggestRequest, body))
        except UmpteenError as problem:
            raise Refusal(422, str(problem)) from None
        await response(scope, receive, send)


async def suggest(server: Server, model: str, asked: SuggestRequest) -> Response:
    """Return the response with the labels of one text or several."""
    snapshot = server.models[model].snapshot
    found = await server.suggest(snapshot, _texts(asked), asked.k, asked.threshold)
    results = [{"labels": [_label(snapshot, *tag) for tag in tags]} for tags in found]
    return answer({"model": model, "version": snapshot.version, "results": results})


def model_routes(server: Server) -> APIRouter:
    """Return the routes that read a model."""
    router, models = APIRouter(tags=["models"]), server.models

    @router.post("/v1/{model}/suggest", response_model=Suggestions, summary="Suggest labels")
    async def suggest_labels(model: str, asked: SuggestRequest) -> Response:
        return await suggest(server, model, asked)

    @router.get("/v1", response_model=ModelList, summary="List all models")
    async def list_models() -> Response:
        return answer({"models": [_summary(model) for model in models.values()]})

    @router.get("/v1/{model}", response_model=ModelInfo, summary="Settings and quality of a model")
    async def model_info(model: str) -> Response:
        return answer(await server.aside(_info, models[model], server))

    @router.post("/v1/{model}/explain", response_model=Explanation, summary="Explain a label")
    async def explain_label(model: str, asked: ExplainRequest) -> Response:
        snapshot = models[model].snapshot
        server.check_texts([asked.text])
        return answer(await server.aside(explain, snapshot, asked.text, asked.label))

    @router.get("/v1/{model}/labels", response_model=FoundLabels, summary="Find labels by name")
    async def find_labels(
        model: str,
        q: str = Query("", max_length=1000, description="Any part of a name."),
        limit: int = Query(20, ge=1, le=1000),
    ) -> Response:
        return answer(await server.aside(_found, models[model].snapshot, q, limit))

    return router


def _texts(asked: SuggestRequest) -> list[str]:
    if (asked.text is None) == (asked.texts is None):
        raise Refusal(422, "give either `text` (one text) or `texts` (a list)")
    return [asked.text] if asked.text is not None else asked.texts or []


def _summary(model: ServedModel) -> dict[str, Any]:
    snapshot = model.snapshot
    return {
        "name": model.name,
        "version": snapshot.version,
        "n_labels": snapshot.n_labels,
        "learns": model.learns,
    }


def _info(model: ServedModel, server: Server) -> dict[str, Any]:
    learning = None
    if model.state is not None:
        learning = model.state.describe(model.current)
        learning["running"] = server.teacher.is_learning(model)
    return {
        **model.snapshot.about,
        "learns": model.learns,
        "learning": learning,
        "versions": model.versions(),
    }


def _found(snapshot: Snapshot, query: str, limit: int) -> dict[str, Any]:
    found = snapshot.labels.find(query, limit)
    counts, names = snapshot.tagger.label_counts_, snapshot.tagger.label_names_.names
    labels = [
        {"label": names[i], "count": int(counts[i])} | _known_as(snapshot, names[i])
        for i in found.labels
    ]
    return {"labels": labels, "n_matches": found.n_matches}


def _label(snapshot: Snapshot, label: str, probability: float) -> dict[str, Any]:
    return {"label": label, "probability": probability, **_known_as(snapshot, label)}


def _known_as(snapshot: Snapshot, label: str) -> dict[str, str]:
    if snapshot.tagger.vocabulary_ is None:
        return {}
    name = snapshot.name_of(label)
    return {} if name is None else {"name": name}
