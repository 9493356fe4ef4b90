"""An engine that measures each step of a fit, on threads or on a local Ray cluster."""

import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import umpteen as um
from umpteen import parallel

PARTS = {
    "text.vectorizer._counted": "counting words",
    "text.vectorizer._weighed": "features of texts",
    "clustering._separated": "clustering labels",
    "clustering._arranged": "clustering labels",
    "linear.training._trained": "training chunks",
    "linear.training._trained_part": "training chunks",
    "linear.search._found": "searching trees",
    "linear.label_texts._combined": "names of labels",
    "aggregated.embeddings._view": "label embeddings",
    "trees.representation._represented": "rows of labels",
    "centroid._nearest": "nearest centroids",
    "ensemble.ensemble._ranked": "ranking candidates",
    "linear.label_texts._evidence": "names of labels",
    "linear.label_texts._nearest": "names of labels",
    "siamese.shortlist._block": "hard negatives",
    "siamese.words._trained": "classifiers of words",
    "siamese.prediction._block": "candidates and their scores",
}


@dataclass
class Step:
    """One call of `map`: what its tasks took, and what waiting for them took."""

    part: str
    wall: float = 0.0
    seconds: list[float] = field(default_factory=list)  # of CPU, of each task
    sizes: list[int] = field(default_factory=list)  # rows of each task's first array
    sent: int = 0
    received: int = 0


class Metered:
    """Passes tasks to an engine, None for threads, and keeps a `Step` for each call."""

    def __init__(self, engine: Any, threads: int) -> None:
        self._engine, self._threads = engine, threads
        self.steps: list[Step] = []

    @property
    def width(self) -> int:
        return self._threads if self._engine is None else self._engine.width

    def map(
        self, function: Callable[..., Any], items: list[Any], shared: tuple[Any, ...]
    ) -> Generator[Any, None, None]:
        step = Step(part_of(function, shared), sizes=list(map(rows, items)))
        self.steps.append(step)
        sent, received = self._moved()
        began = time.perf_counter()
        for seconds, result in self._run(items, (function, *shared)):
            step.wall += time.perf_counter() - began
            step.seconds.append(seconds)
            yield result
            began = time.perf_counter()
        step.wall += time.perf_counter() - began
        step.sent, step.received = (
            after - before for after, before in zip(self._moved(), (sent, received), strict=True)
        )

    def _run(self, items: list[Any], shared: tuple[Any, ...]) -> Any:
        if self._engine is not None:
            return self._engine.map(timed, items, shared)
        with parallel.engine(None):  # type: ignore[arg-type]
            return iter(parallel.map(timed, items, shared, n_jobs=self._threads))

    def _moved(self) -> tuple[int, int]:
        return getattr(self._engine, "n_sent", 0), getattr(self._engine, "n_received", 0)


class Disturbed:
    """An engine that something happens to after some results; `left` are those until then."""

    def __init__(self, engine: Any, after: int, disturb: Callable[[Any], object]) -> None:
        self._engine, self.left, self._disturb = engine, after, disturb

    @property
    def width(self) -> int:
        return self._engine.width  # type: ignore[no-any-return]

    def map(
        self, function: Callable[..., Any], items: list[Any], shared: tuple[Any, ...]
    ) -> Generator[Any, None, None]:
        for result in self._engine.map(function, items, shared):
            self.left -= 1
            if self.left == 0:
                self._disturb(result)
            yield result


def part_of(function: Callable[..., Any], shared: tuple[Any, ...]) -> str:
    """The part of a fit that a function, or the one that `over_blocks` calls, is of."""
    own = shared[1] if function.__name__ == "_with_threads" else function
    name = f"{own.__module__.removeprefix('umpteen.')}.{own.__name__}"
    return PARTS.get(name, name)


def timed(item: Any, function: Callable[..., Any], *shared: Any) -> tuple[float, Any]:
    began = time.thread_time()  # a loaded machine makes tasks longer, but not their work
    result = function(item, *shared)
    return time.thread_time() - began, result


def rows(item: Any) -> int:
    first = item[0] if isinstance(item, tuple) and item else item
    return len(first) if isinstance(first, np.ndarray | list) else 0


def cpu_seconds() -> float:
    """CPU seconds of this process and of all that it started, their children included."""
    ticks, parents = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = stat.read_text().rpartition(")")[2].split()
            pid = int(stat.parent.name)
            parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(ticks.get(pid, 0) for pid in ours) / os.sysconf("SC_CLK_TCK")


def of_workers() -> Iterator[int]:
    """Yield the memory of each Ray worker of this machine, without what it maps."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if (process / "cmdline").read_bytes().startswith(b"ray::"):
                (own,) = (
                    line
                    for line in (process / "status").read_text().splitlines()
                    if line.startswith("RssAnon")
                )
                yield 1024 * int(own.split()[1])


class LocalCluster:
    """A Ray cluster of nodes with one core each, all on this machine."""

    def __init__(self, n_nodes: int, store: int, store_of_head: int | None = None) -> None:
        from ray.cluster_utils import Cluster

        os.environ |= {"RAY_worker_niceness": "0"}
        self._store = store
        head = {
            "num_cpus": 1,
            "object_store_memory": store_of_head or store,
            "include_dashboard": False,
        }
        self._cluster = Cluster(initialize_head=True, connect=False, head_node_args=head)
        self.address = self._cluster.address
        self.others = [self._add() for _ in range(n_nodes - 1)]

    def _add(self) -> Any:
        return self._cluster.add_node(num_cpus=1, object_store_memory=self._store)

    def replace_one(self) -> None:
        """Kill a node as a power cut does, and start another."""
        self._cluster.remove_node(self.others.pop(), allow_graceful=False)
        self.others.append(self._add())

    def close(self) -> None:
        self._cluster.shutdown()

    @contextmanager
    def watched(self, seconds: float = 0.05) -> Iterator[dict[str, int]]:
        """Yield what Ray says of the last node's store: the most in use, and what it spilled.

        And the most memory that a worker has of its own, without the store and mapped files.
        """
        from ray._private.internal_api import node_stats

        node, ended = self.others[-1], threading.Event()
        found = {"used": 0, "spilled": 0, "worker": 0}

        def watch() -> None:
            while not ended.wait(seconds):
                stats = node_stats(node.node_ip_address, node.node_manager_port, False).store_stats
                found["used"] = max(found["used"], stats.object_store_bytes_used)
                found["spilled"] = stats.spilled_bytes_total
                found["worker"] = max([found["worker"], *of_workers()])

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield found
        finally:
            ended.set()
            thread.join()


@contextmanager
def local_cluster(
    n_nodes: int, store: int, store_of_head: int | None = None
) -> Iterator[tuple[LocalCluster, Any]]:
    """Yield a cluster and the engine that is connected to it."""
    cluster = LocalCluster(n_nodes, store, store_of_head)
    try:
        with um.cluster.ray(cluster.address) as engine:
            yield cluster, engine
    finally:
        cluster.close()
