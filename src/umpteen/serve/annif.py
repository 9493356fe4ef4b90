"""The routes of Annif, so that its `http` backend and its clients work unchanged.

A project is a model. Subjects have the URIs of the vocabulary; without one, the URI is the label.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Response
from pydantic import BaseModel, Field

from umpteen.serve.journal import Correction
from umpteen.serve.models import ServedModel
from umpteen.serve.schemas import Name, Text
from umpteen.serve.server import Server, answer
from umpteen.serve.snapshot import Snapshot, Tags

_MOST = 1000  # subjects of a text
Limit = Annotated[int, Field(ge=0)]
Threshold = Annotated[float, Field(ge=0, le=1)]


class Document(BaseModel):
    """A text to find subjects for."""

    text: Text
    document_id: Text | None = None


class Documents(BaseModel):
    """Texts to find subjects for."""

    documents: list[Document]


class Subject(BaseModel):
    """A subject by its URI."""

    uri: Name


class Indexed(BaseModel):
    """A text and its subjects."""

    text: Text
    subjects: Annotated[list[Subject], Field(max_length=_MOST)]


def annif_routes(server: Server) -> APIRouter:
    """Return the routes that Annif has."""
    router, models = APIRouter(prefix="/v1/projects", tags=["Annif"]), server.models

    @router.get("", summary="List all projects")
    async def list_projects() -> Response:
        return answer({"projects": [_project(model) for model in models.values()]})

    @router.get("/{project}", summary="Describe a project")
    async def show_project(project: str) -> Response:
        return answer(_project(models[project]))

    @router.post("/{project}/suggest", summary="Suggest subjects for a text (a form)")
    async def suggest(
        project: str,
        text: Annotated[Text, Form()],
        limit: Annotated[Limit, Form()] = 10,
        threshold: Annotated[Threshold, Form()] = 0.0,
    ) -> Response:
        snapshot = models[project].snapshot
        (tags,) = await server.suggest(snapshot, [text], _k(limit), threshold)
        return answer({"results": _subjects(snapshot, tags[:limit])})

    @router.post("/{project}/suggest-batch", summary="Suggest subjects for several texts")
    async def suggest_batch(
        project: str,
        asked: Documents,
        limit: Annotated[Limit, Query()] = 10,
        threshold: Annotated[Threshold, Query()] = 0.0,
    ) -> Response:
        snapshot, documents = models[project].snapshot, asked.documents
        texts = [document.text for document in documents]
        found = await server.suggest(snapshot, texts, _k(limit), threshold)
        results = [
            {"document_id": document.document_id, "results": _subjects(snapshot, tags[:limit])}
            for document, tags in zip(documents, found, strict=True)
        ]
        return answer(results)

    @router.post("/{project}/learn", status_code=204, summary="Learn from indexed texts")
    async def learn(project: str, asked: list[Indexed]) -> Response:
        model = models[project]
        snapshot = model.snapshot
        corrections = [
            Correction(one.text, [snapshot.label_of(subject.uri) for subject in one.subjects])
            for one in asked
        ]
        await server.record(model, corrections)
        return Response(status_code=204)

    return router


def _project(model: ServedModel) -> dict[str, Any]:
    about = model.snapshot.about
    return {
        "project_id": model.name,
        "name": model.name,
        "language": about["language"] or "",
        "backend": {"backend_id": "umpteen"},
        "vocab": {"vocab_id": model.name, "languages": []},
        "vocab_language": about["language"] or "",
        "is_trained": True,
        "modification_time": about["trained"],
    }


def _k(limit: int) -> int:
    return min(max(limit, 1), _MOST)


def _subjects(snapshot: Snapshot, tags: Tags) -> list[dict[str, Any]]:
    return [_subject(snapshot, label, probability) for label, probability in tags]


def _subject(snapshot: Snapshot, label: str, probability: float) -> dict[str, Any]:
    concept = snapshot.concept(label)
    return {
        "uri": (concept and concept.uri) or label,
        "label": (concept and concept.name) or label,
        "notation": (concept and concept.notation) or None,
        "score": probability,
    }
