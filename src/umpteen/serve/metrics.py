"""Metrics for Prometheus, and one log line for each request."""

import json
import logging
import time
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from umpteen.serve.models import Models

_LOG = logging.getLogger("umpteen.serve.access")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """The metrics of an application, in a registry of its own."""

    def __init__(self, models: Models, n_waiting: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.seconds = Histogram(
            "umpteen_request_seconds", "Time from a request's headers to the end of its response.",
            ["route"], buckets=_SECONDS, registry=self.registry,
        )  # fmt: skip
        self.requests = Counter(
            "umpteen_requests", "Requests by route and status.", ["route", "status"],
            registry=self.registry,
        )  # fmt: skip
        self.texts = Counter(
            "umpteen_texts", "Texts that were answered.", ["model"], registry=self.registry
        )
        self.batch = Histogram(
            "umpteen_batch_texts", "Texts per batch.", buckets=_TEXTS,
            registry=self.registry,
        )  # fmt: skip
        Gauge("umpteen_waiting_texts", "Texts in the queue.", registry=self.registry).set_function(
            n_waiting
        )
        self.registry.register(_OfModels(models))

    def response(self) -> Response:
        """Return all metrics in the format of Prometheus."""
        return Response(generate_latest(self.registry), media_type=CONTENT_TYPE_LATEST)


class _OfModels:
    """Versions, labels and corrections of the models, as they are when someone asks."""

    def __init__(self, models: Models) -> None:
        self._models = models

    def collect(self) -> Iterable[GaugeMetricFamily]:
        version = GaugeMetricFamily(
            "umpteen_model", "The version in use.", labels=["model", "version"]
        )
        labels = GaugeMetricFamily("umpteen_labels", "Labels of a model.", labels=["model"])
        corrections = GaugeMetricFamily(
            "umpteen_corrections", "Corrections in the journal.", labels=["model", "state"]
        )
        damaged = GaugeMetricFamily(
            "umpteen_damaged_versions", "Versions that could not be loaded.", labels=["model"]
        )
        for model in self._models.values():
            version.add_metric([model.name, model.snapshot.version], 1)
            labels.add_metric([model.name], model.snapshot.n_labels)
            if model.state is not None:
                current = model.current
                corrections.add_metric([model.name, "pending"], model.state.n_pending(current))
                corrections.add_metric([model.name, "applied"], current.applied)
                corrections.add_metric([model.name, "refused"], current.refused)
                damaged.add_metric([model.name], len(model.state.versions.damaged()))
        return [version, labels, corrections, damaged]


class Watch:
    """Middleware that measures and logs every request, without its texts."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and record its status and time."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 499  # as nginx counts clients that went away

        async def send_on(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_on)
        except Exception:
            status = 500
            raise
        finally:
            self._note(scope, status, time.perf_counter() - start)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "other")
        self._metrics.requests.labels(route, status).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        if not _LOG.isEnabledFor(logging.INFO):
            return
        client = scope.get("client") or ("-",)
        path = json.dumps(scope["path"])[1:-1]  # no line breaks
        noted = {
            "method": scope["method"], "path": path, "status": status,
            "ms": round(1000 * seconds, 1), "client": client[0],
        }  # fmt: skip
        _LOG.info("%s %s %d %.1f ms %s", *noted.values(), extra={"noted": noted})
