"""The HTTP interface: routes, and what they share."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse
from pydantic_core import to_json
from starlette.staticfiles import StaticFiles

from umpteen import __version__
from umpteen.serve import refusals
from umpteen.serve.batching import Batcher
from umpteen.serve.explaining import explain
from umpteen.serve.models import Models, ServedModel
from umpteen.serve.refusals import Refusal, busy
from umpteen.serve.schemas import (
    ExplainRequest,
    Explanation,
    FoundLabels,
    ModelList,
    SuggestRequest,
    Suggestions,
)
from umpteen.serve.settings import Settings
from umpteen.serve.snapshot import Snapshot

PAGE = Path(__file__).parent / "page"
_MOST_ASIDE = 16  # explanations and searches that may wait

Result = TypeVar("Result")


class Server:
    """What all routes share: the models, the settings, and the threads that work."""

    def __init__(self, models: Models, settings: Settings) -> None:
        self.models, self.settings = models, settings
        self.batcher = Batcher(settings)
        self._aside = ThreadPoolExecutor(1, "umpteen-aside")
        self._n_aside = 0

    async def suggest(
        self, snapshot: Snapshot, texts: list[str], k: int, threshold: Any
    ) -> list[list[tuple[str, float]]]:
        """Return names and probabilities for each text, as `Tagger.predict` does."""
        self.check_texts(texts)
        if not texts:
            return []
        top = await self.batcher.ask(snapshot, texts, k)
        return snapshot.tags(top, k, threshold)

    def check_texts(self, texts: list[str]) -> None:
        """Refuse too many texts, and texts that are too long."""
        most, longest = self.settings.max_texts, self.settings.max_text
        if len(texts) > most:
            raise Refusal(413, f"{len(texts):,} texts are too many: send at most {most:,} at once")
        for number, text in enumerate(texts):
            if len(text) > longest:
                raise Refusal(
                    413,
                    f"text {number} has {len(text):,} characters: send at most {longest:,}",
                )

    async def aside(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Run what is no suggestion on a thread of its own; refuse if too much waits for it."""
        if self._n_aside >= _MOST_ASIDE:
            raise busy()
        self._n_aside += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._aside, function, *arguments)
        finally:
            self._n_aside -= 1

    @asynccontextmanager
    async def running(self, app: FastAPI) -> AsyncIterator[None]:
        """Answer requests while the block runs."""
        task = asyncio.create_task(self.batcher.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            self.batcher.close()
            self._aside.shutdown(wait=False, cancel_futures=True)


def create_app(models: Models, settings: Settings | None = None) -> FastAPI:
    """Return the application, ready for any ASGI server."""
    server = Server(models, settings or Settings())
    app = FastAPI(
        title="umpteen",
        version=__version__,
        description="The right few labels for a text, out of thousands to millions.",
        lifespan=server.running,
    )
    refusals.register(app)
    _add_model_routes(app, server)
    _add_page(app)
    return app


def _add_model_routes(app: FastAPI, server: Server) -> None:
    models = server.models

    @app.get("/v1", response_model=ModelList, summary="All models")
    async def list_models() -> Response:
        return answer({"models": [_summary(model, server) for model in models.values()]})

    @app.get("/v1/{model}", summary="What a model is, and how good")
    async def model_info(model: str) -> Response:
        served = models[model]
        about = await server.aside(lambda: served.snapshot.about)
        return answer(about)

    @app.post("/v1/{model}/suggest", response_model=Suggestions, summary="Labels for texts")
    async def suggest(model: str, asked: SuggestRequest) -> Response:
        snapshot = models[model].snapshot
        texts = _texts(asked)
        found = await server.suggest(snapshot, texts, asked.k, asked.threshold)
        results = [{"labels": [_label(snapshot, *tag) for tag in tags]} for tags in found]
        return answer({"model": model, "version": snapshot.version, "results": results})

    @app.post("/v1/{model}/explain", response_model=Explanation, summary="Why a text gets a label")
    async def explain_label(model: str, asked: ExplainRequest) -> Response:
        snapshot = models[model].snapshot
        server.check_texts([asked.text])
        return answer(await server.aside(explain, snapshot, asked.text, asked.label))

    @app.get("/v1/{model}/labels", response_model=FoundLabels, summary="Labels by parts of a name")
    async def find_labels(model: str, q: str = "", limit: int = 20) -> Response:
        snapshot = models[model].snapshot
        found = await server.aside(snapshot.labels.find, q, min(max(limit, 1), 1000))
        counts, names = snapshot.tagger.label_counts_, snapshot.tagger.label_names_.names
        labels = [
            {"label": names[i], "count": int(counts[i])} | _known_as(snapshot, names[i])
            for i in found.labels
        ]
        return answer({"labels": labels, "n_matches": found.n_matches})


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")


def answer(content: Any) -> Response:
    """Return an answer in JSON."""
    return Response(to_json(content), media_type="application/json")


def _texts(asked: SuggestRequest) -> list[str]:
    if (asked.text is None) == (asked.texts is None):
        raise Refusal(422, "give either text, one text, or texts, a list of them")
    return [asked.text] if asked.text is not None else asked.texts or []


def _summary(model: ServedModel, server: Server) -> dict[str, Any]:
    snapshot = model.snapshot
    return {
        "name": model.name,
        "version": snapshot.version,
        "n_labels": snapshot.n_labels,
        "learns": server.settings.learns and len(snapshot.tagger.replay_) > 0,
    }


def _label(snapshot: Snapshot, label: str, probability: float) -> dict[str, Any]:
    return {"label": label, "probability": probability} | _known_as(snapshot, label)


def _known_as(snapshot: Snapshot, label: str) -> dict[str, str]:
    name = snapshot.name_of(label)
    return {} if name is None else {"name": name}
