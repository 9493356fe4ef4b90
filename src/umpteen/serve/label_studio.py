"""The routes of a Label Studio ML backend: predictions for tasks, and learning from annotations.

Its URL is `http://HOST:PORT` for the first model, or `http://HOST:PORT/label-studio/MODEL`. The
webhook sends the whole annotation, so nothing has to be fetched from Label Studio, and no access
token is needed.
"""

from typing import Any
from xml.etree import ElementTree

from fastapi import APIRouter, Response
from pydantic import BaseModel

from umpteen.serve.journal import Correction
from umpteen.serve.label_config import Control, find_control, labels_in, text_of
from umpteen.serve.models import ServedModel
from umpteen.serve.refusals import Refusal
from umpteen.serve.server import Server, answer
from umpteen.serve.snapshot import Tags

_MOST = 20  # labels of a task
_LEAST = 0.3  # probability of all but the first
_LEARNS = ("ANNOTATION_CREATED", "ANNOTATION_UPDATED")


class PredictRequest(BaseModel):
    """Tasks, and the labeling interface of their project."""

    tasks: list[dict[str, Any]]
    label_config: str = ""


class WebhookEvent(BaseModel):
    """An event in Label Studio."""

    action: str
    task: dict[str, Any] | None = None
    annotation: dict[str, Any] | None = None
    project: dict[str, Any] | None = None


def label_studio_routes(server: Server) -> APIRouter:
    """Return the routes that Label Studio asks for, at the root and for each model."""
    router = APIRouter(tags=["Label Studio"])
    prefixes = ("", "/label-studio/{model}")

    async def health(model: str | None = None) -> Response:
        _chosen(server, model)  # or 404
        return answer({"status": "UP", "model_class": "Tagger"})  # needs no key, so tells no name

    async def setup(model: str | None = None) -> Response:
        return answer({"model_version": _chosen(server, model).snapshot.version})

    async def predict(asked: PredictRequest, model: str | None = None) -> Response:
        snapshot, control = _chosen(server, model).snapshot, _control(asked.label_config)
        texts = [text_of(task, control) for task in asked.tasks]
        found = await server.suggest(snapshot, texts, _MOST, None)
        results = [_prediction(control, tags, snapshot.version) for tags in found]
        return answer({"results": results, "model_version": snapshot.version})

    async def webhook(event: WebhookEvent, model: str | None = None) -> Response:
        chosen = _chosen(server, model)
        if event.action == "START_TRAINING":
            chosen.writable_state()
            server.teacher.start(chosen)
            return answer({"status": "learning"}, 201)
        if event.action not in _LEARNS or event.task is None or event.annotation is None:
            return answer({"status": "nothing to learn"}, 201)
        config = (event.project or {}).get("label_config")
        correction = _correction(event, _control(config if isinstance(config, str) else ""))
        return answer({"status": "ok", "recorded": await server.record(chosen, [correction])}, 201)

    for prefix in prefixes:
        router.add_api_route(f"{prefix}/health", health, methods=["GET"], summary="Health")
        router.add_api_route(f"{prefix}/setup", setup, methods=["POST"], summary="Model version")
        router.add_api_route(f"{prefix}/predict", predict, methods=["POST"], summary="Predict")
        router.add_api_route(f"{prefix}/webhook", webhook, methods=["POST"], summary="Learn")
    return router


def _chosen(server: Server, name: str | None) -> ServedModel:
    return server.models[next(iter(server.models)) if name is None else name]


def _control(config: str) -> Control:
    try:
        return find_control(config)
    except (ElementTree.ParseError, ValueError) as problem:
        raise Refusal(422, f"label_config is not a valid labeling interface: {problem}") from None


def _prediction(control: Control, tags: Tags, version: str) -> dict[str, Any]:
    offered = [tag for tag in tags if not control.choices or tag[0] in control.choices]
    most = _MOST if control.is_multiple else 1
    chosen = [tag for rank, tag in enumerate(offered[:most]) if rank == 0 or tag[1] >= _LEAST]
    scores = [probability for _, probability in chosen]
    result = [control.result([label for label, _ in chosen])] if chosen else []
    return {
        "result": result,
        "score": sum(scores) / len(scores) if scores else 0.0,
        "model_version": version,
    }


def _correction(event: WebhookEvent, control: Control) -> Correction:
    task, annotation = event.task or {}, event.annotation or {}
    text = text_of(task, control)
    prediction = annotation.get("prediction")
    suggested = labels_in(prediction, control) if isinstance(prediction, dict) else None
    number = task.get("id")
    labels = labels_in(annotation, control)
    return Correction(
        text, labels, suggested or None, str(number) if isinstance(number, int) else None
    )
