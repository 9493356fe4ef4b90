"""An engine for `umpteen.parallel` whose tasks run on a Ray cluster.

Each large array of `shared` is an object of its own in Ray's store, known by its content: a node
fetches it once and its workers read it in place. Most steps of a fit share the features with the
step before, which are then there already. Items travel in batches, a few per core.
"""

import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from umpteen import parallel
from umpteen.cluster.failures import check_store, translated
from umpteen.cluster.parcels import Bytes, Parcel, digest, pack, unpack, unpack_copy
from umpteen.errors import ClusterError
from umpteen.storage.folder import versions

_RETRIES = 5  # of a task whose worker or node died; an error of the task itself is not retried
_BATCHES = 16  # per core, so that cores which are done early do not wait for long
_WINDOW = 4  # batches per core that are on their way at a time


class Step(NamedTuple):
    """What names the function and `shared` of one call of `map` to a worker."""

    name: str
    version: str
    frozen: list[bool]


class RayEngine:
    """Runs tasks on the cluster that `ray`, the module, is connected to.

    `n_sent` counts the bytes that were put into the store for all tasks of a step, `n_received`
    those of results. `most_shared` is the most that a step shared, which every node must hold.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._task = ray.remote(num_cpus=1, max_retries=_RETRIES)(work)
        self._stored: dict[str, Any] = {}  # the arrays of the latest step, by their digests
        self.n_sent = self.n_received = self.most_shared = 0

    @property
    def width(self) -> int:
        """The cores of all nodes that are there at this moment."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def map(
        self, function: Callable[..., Any], items: list[Any], shared: tuple[Any, ...]
    ) -> Generator[Any, None, None]:
        """Yield `function(item, *shared)` for each item, in order."""
        with translated(self._ray):
            width = self.width
            tasks = self._started(function, items, shared, max(1, len(items) // (_BATCHES * width)))
            waiting = deque(islice(tasks, _WINDOW * width))
        try:
            while waiting:
                with translated(self._ray):
                    found = self._ray.get(waiting[0])
                    waiting.popleft()
                    waiting.extend(islice(tasks, 1))
                for parcel in found:
                    self.n_received += parcel.n_bytes
                    yield unpack_copy(parcel)  # so that results leave the store
        finally:
            for task in waiting:
                with suppress(Exception):  # it has ended, or the cluster is gone
                    self._ray.cancel(task, force=True)  # a kernel hears nothing before its end

    def _started(
        self, function: Callable[..., Any], items: list[Any], shared: tuple[Any, ...], size: int
    ) -> Iterator[Any]:
        """Start one task after another, each when it is asked for."""
        parcel = pack((function, shared), self._ray.cloudpickle)
        check_store(self._ray, parcel.n_bytes)
        self.most_shared = max(self.most_shared, parcel.n_bytes)
        step = Step(uuid.uuid4().hex, versions()["umpteen"], parcel.frozen)
        rest, *arrays = self._put(parcel.rest), *self._stored_arrays(parcel.arrays)
        for start in range(0, len(items), size):
            yield self._task.remote(step, items[start : start + size], rest, *arrays)

    def _stored_arrays(self, arrays: list[Bytes]) -> list[Any]:
        """Put arrays into the store, but for those that are there from the step before."""
        keys, before = [digest(array) for array in arrays], self._stored
        self._stored = {}
        for key, array in zip(keys, arrays, strict=True):
            if key not in self._stored:
                self._stored[key] = before[key] if key in before else self._put(array)
        return [self._stored[key] for key in keys]

    def _put(self, content: bytes | Bytes) -> Any:
        self.n_sent += len(content)
        return self._ray.put(content)


_latest: tuple[str, Any] = "", None  # of this worker: its scratch memory and tables are used again


def work(step: Step, batch: list[Any], rest: bytes, *arrays: Bytes) -> list[Parcel]:
    """Return the results of some items: what Ray runs in a worker, with one thread."""
    global _latest
    if step.version != (here := versions()["umpteen"]):
        raise ClusterError(
            f"a node has umpteen {here}, but this fit runs with {step.version}: install the "
            "same version on all nodes"
        )
    if _latest[0] != step.name:
        _latest = "", None  # what it holds leaves the store before the next comes
        _latest = step.name, unpack(Parcel(rest, list(arrays), step.frozen))
    function, shared = _latest[1]
    with parallel.at_most(1), parallel.one_thread_each:
        return [pack(function(item, *shared)) for item in batch]
