"""Connect to a Ray cluster, or start one on this machine."""

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from umpteen import parallel
from umpteen.cluster.checkpoint import checkpointed
from umpteen.cluster.engine import RayEngine
from umpteen.cluster.failures import first_line
from umpteen.errors import ClusterConnectionError, ClusterError, ClusterMemoryError
from umpteen.extras import require

_PATIENCE = 10.0  # seconds that a host has to answer
_LEAST_STORE = 80_000_000  # bytes; Ray refuses less
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
_STORE_SHARE = 0.3  # of the memory, as Ray itself takes


@contextmanager
def ray(
    address: str = "auto", *, checkpoint: str | os.PathLike[str] | None = None
) -> Iterator[parallel.Engine]:
    """Run the tasks of the block on a Ray cluster: `with um.cluster.ray("auto"): tagger.fit(...)`.

    `address` is "auto" for the cluster that this machine is a node of, "host:6379" for the same
    by its head node, "ray://host:10001" from outside of the cluster, or "local" for one that is
    started on this machine and stopped after the block. A program that has called `ray.init`
    itself keeps its own connection.

    Results are the same to the bit as without a cluster. Tasks of workers and nodes that die run
    again elsewhere. If this program may die, too, name a folder as `checkpoint`: it keeps the
    results of finished tasks, and the same program started again goes on from there. They are
    removed when the block ends without an error.
    """
    library = require("ray", "cluster")
    with connected(library, address):
        engine = RayEngine(library)
        recording: AbstractContextManager[parallel.Engine] = (
            nullcontext(engine)
            if checkpoint is None
            else checkpointed(engine, checkpoint, library.cloudpickle)
        )
        with recording as chosen, parallel.engine(chosen):
            yield chosen


@contextmanager
def connected(library: Any, address: str) -> Iterator[None]:
    """Use the cluster at an address while the block runs; a connection of the program stays."""
    if library.is_initialized():
        yield
        return
    _connect(library, address)
    try:
        yield
    finally:
        library.shutdown()


def _connect(library: Any, address: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": "error"}
    try:
        if address == "local":
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent elsewhere
            os.environ.setdefault("RAY_worker_niceness", "0")  # workers count as much as threads
            library.init(
                "local", include_dashboard=False, object_store_memory=_store_bytes(), **quiet
            )
            return
        if address != "auto":
            _check_answers(address)
        library.init(address, **quiet)
    except ClusterError:
        raise
    except ConnectionError as problem:
        raise ClusterConnectionError(
            f"no Ray cluster was found at {address!r}: start one (ray start --head), give the "
            'address of its head node, or use "local" for this machine alone. Ray says: '
            f"{first_line(problem)}"
        ) from problem
    except (RuntimeError, ValueError, TimeoutError) as problem:
        raise ClusterConnectionError(
            f"the Ray cluster at {address!r} cannot be used: {problem}. All nodes and this program "
            "need the same versions of ray and Python"
        ) from problem


def _check_answers(address: str) -> None:
    """Ask before Ray does, which tries for minutes."""
    try:
        found = urlsplit(address if "://" in address else f"ray://{address}")
        place = found.hostname, found.port
    except ValueError:
        place = None, None
    if place[0] is None or place[1] is None:
        raise ClusterConnectionError(
            f'{address!r} is not an address: expected "auto", "local", "host:6379" or '
            '"ray://host:10001"'
        )
    try:
        socket.create_connection(place, _PATIENCE).close()
    except OSError as problem:
        raise ClusterConnectionError(
            f"nothing answers at {address!r} ({problem.strerror or problem}): check the host, the "
            "port (6379 for nodes, 10001 for ray://) and the firewall"
        ) from problem


def _store_bytes() -> int | None:
    """Return the size of an object store that fits into memory; a larger one would be on disk."""
    if not _SHARED_MEMORY.is_dir():  # macOS and Windows
        return None
    free = shutil.disk_usage(_SHARED_MEMORY).free
    if free < _LEAST_STORE:
        raise ClusterMemoryError(
            f"{_SHARED_MEMORY} has {free:,} bytes left, and a node needs {_LEAST_STORE:,}: free "
            "some, or start the container with a larger --shm-size"
        )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_LEAST_STORE, int(min(0.9 * free, _STORE_SHARE * memory)))
