"""Metrics for Prometheus, measured for each request."""

import time
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from umpteen.serve.access_log import AccessLog
from umpteen.serve.models import Models

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
        self._of_route: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request; there are few routes and statuses, so their counters are kept."""
        found = self._of_route.get((route, status))
        if found is None:
            found = self.requests.labels(route, status), self.seconds.labels(route)
            self._of_route[route, status] = found
        requests, times = found
        requests.inc()
        times.observe(seconds)

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

    def __init__(self, app: ASGIApp, metrics: Metrics, log: AccessLog) -> None:
        self._app, self._metrics, self._log = app, metrics, log

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
            seconds = time.perf_counter() - start
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count(route, status, seconds)
            self._log.note(scope, status, seconds)
