"""The application: routes and middleware."""

from pathlib import Path

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse
from starlette.middleware.cors import CORSMiddleware
from starlette.staticfiles import StaticFiles

from umpteen import __version__
from umpteen.serve import refusals
from umpteen.serve.annif import annif_routes
from umpteen.serve.label_studio import label_studio_routes
from umpteen.serve.learn_routes import learn_routes
from umpteen.serve.limits import Limits
from umpteen.serve.metrics import Watch
from umpteen.serve.model_routes import QuickSuggest, model_routes
from umpteen.serve.models import Models
from umpteen.serve.refusals import Refusal
from umpteen.serve.security import Gate
from umpteen.serve.server import Server, answer
from umpteen.serve.settings import Settings

PAGE = Path(__file__).parent / "page"


def create_app(models: Models, settings: Settings | None = None) -> FastAPI:
    """Return an application for any ASGI server."""
    server = Server(models, settings or Settings())
    app = FastAPI(
        title="umpteen",
        version=__version__,
        description="The right few labels for a text, out of thousands to millions.",
        lifespan=server.running,
        redoc_url=None,
    )
    app.state.server = server
    refusals.register(app)
    # the first that matches answers: Annif's /v1/projects before names
    for routes in (annif_routes, model_routes, learn_routes, label_studio_routes):
        app.include_router(routes(server))
    _add_health(app, server)
    _add_page(app)
    _add_middleware(app, server)
    return app


def _add_middleware(app: FastAPI, server: Server) -> None:
    """The last one that is added is the first that a request passes through."""
    settings = server.settings
    app.add_middleware(QuickSuggest, server=server)
    app.add_middleware(Limits, settings=settings)
    app.add_middleware(Gate, settings=settings)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=settings.origins, allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-API-Key"],
        )  # fmt: skip
    app.add_middleware(Watch, metrics=server.metrics, log=server.access_log)


def _add_health(app: FastAPI, server: Server) -> None:
    @app.get("/livez", tags=["health"], summary="Whether the process is alive")
    async def live() -> Response:
        return answer({"status": "alive"})

    @app.get("/readyz", tags=["health"], summary="Whether the server is ready for requests")
    async def ready() -> Response:
        if not server.is_ready:
            raise Refusal(503, "the server is starting or shutting down", {"Retry-After": "1"})
        return answer({"status": "ready"})

    @app.get("/metrics", tags=["health"], summary="Metrics for Prometheus")
    async def metrics() -> Response:
        return server.metrics.response()


def _add_page(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(PAGE / "index.html")

    app.mount("/page", StaticFiles(directory=PAGE), name="page")
