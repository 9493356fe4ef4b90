"""An engine for `umpteen.parallel` whose tasks run on a Ray cluster.

Each large array of `shared` is an object of its own in Ray's store, known by its content: a node
fetches it once and its workers read it in place. Most steps of a fit share the features with the
step before, which are then there already. Items travel in batches, a few per core.

What is `Sharded` is sent in the same way if it is small. Otherwise it stays in blocks of rows, and
each batch of items gets the rows that it needs.

With a scratch folder, all large arrays are files there instead, which workers map.
"""

import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from umpteen import parallel, scratch
from umpteen.cluster.blocks import (
    Blocks,
    Delivery,
    delivered,
    key_of,
    number_of_blocks,
    size_of,
)
from umpteen.cluster.deliveries import Deliveries, InFiles
from umpteen.cluster.failures import translated
from umpteen.cluster.nodes import Nodes
from umpteen.cluster.parcels import Parcel, digest, pack, unpack, unpack_copy
from umpteen.errors import ClusterError
from umpteen.sharding import Matrix, Sharded
from umpteen.storage.folder import versions

_RETRIES = 5  # of a task whose worker or node died; an error of the task itself is not retried
_BATCHES = 16  # per core, so that cores which are done early do not wait for long
_WINDOW = 4  # batches per core that are on their way at a time
_SMALL_BATCHES, _SMALL_WINDOW = 64, 2  # the same for batches that come with their rows
_GRACE = 0.5  # seconds in which tasks that nobody waits for may end, before they are cancelled
_WHOLE = 0.25  # of the smallest store: what is sharded and larger stays in blocks
_LARGEST_BLOCK = 0.125  # of the smallest store
_ROWS = 0.0625  # of the smallest store, divided by cores: rows of a batch that are there at once


class Step(NamedTuple):
    """What names the function and `shared` of one call of `map` to a worker.

    `place` is that of a `Sharded` whose rows come with each batch.
    """

    name: str
    version: str
    frozen: list[bool]
    place: int | None


class RayEngine:
    """Runs tasks on the cluster that `ray`, the module, is connected to.

    `n_sent` counts the bytes that were put into the store for all tasks of a step, `n_received`
    those of results, and `n_rows` those of rows for single batches. `most_held` is the most that
    the store of a node had to hold during a step: what its tasks share, blocks and slices.
    `most_whole` is the share of the smallest store above which matrices stay in blocks.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._task = ray.remote(num_cpus=1, max_retries=_RETRIES, scheduling_strategy="SPREAD")(
            work
        )
        self._stored: dict[str, Any] = {}  # what the latest step has in the store, by its digest
        self._written: dict[str, Any] = {}  # what it has written into the scratch folder
        self._n_blocks: dict[tuple[Any, ...], int] = {}
        self.n_sent = self.n_received = self.n_rows = self.most_held = 0
        self.most_whole = _WHOLE

    @property
    def width(self) -> int:
        """The cores of all nodes that are there at this moment."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def map(
        self, function: Callable[..., Any], items: list[Any], shared: tuple[Any, ...]
    ) -> Generator[Any, None, None]:
        """Yield `function(item, *shared)` for each item, in order."""
        if not items:  # all were done before a restart
            return
        files: dict[str, Any] = {}  # they are there until the last task has ended
        with translated(self._ray):
            width = self.width
            place = self._place_of_blocks(shared)
            n_batches, window = (
                (_BATCHES, _WINDOW) if place is None else (_SMALL_BATCHES, _SMALL_WINDOW)
            )
            size = max(1, len(items) // (n_batches * width))
            batches = [items[start : start + size] for start in range(0, len(items), size)]
            tasks = self._started(function, batches, shared, place, files)
            waiting = deque(islice(tasks, window * width))
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
            self._cancel(list(waiting))

    def _cancel(self, tasks: list[Any]) -> None:
        """Cancel what has not ended after a moment.

        Ray ends this process if a task is cancelled while its result is arriving: those that are
        nearly done may end.
        """
        try:
            with suppress(Exception):
                tasks = self._ray.wait(tasks, num_returns=len(tasks), timeout=_GRACE)[1]
        finally:
            for task in tasks:
                with suppress(Exception):  # it has ended, or the cluster is gone
                    self._ray.cancel(task, force=True)  # a kernel hears nothing before its end

    def _place_of_blocks(self, shared: tuple[Any, ...]) -> int | None:
        """Return the place of what is too large to be sent whole."""
        if scratch.current() is not None:
            return None
        for place, each in enumerate(shared):
            if isinstance(each, Sharded):
                n_bytes = sum(map(size_of, each.matrices))
                return (
                    place if n_bytes > self.most_whole * Nodes(self._ray).smallest_store else None
                )
        return None

    def _started(
        self, function: Callable[..., Any], batches: list[list[Any]], shared: tuple[Any, ...],
        place: int | None, files: dict[str, Any],
    ) -> Iterator[Any]:  # fmt: skip
        """Start one task after another, each when it is asked for; `files` gets what it writes."""
        others = tuple(None if i == place else each for i, each in enumerate(shared))
        parcel = pack((function, others), self._ray.cloudpickle)
        step = Step(uuid.uuid4().hex, versions()["umpteen"], parcel.frozen, place)
        before, self._stored = self._stored, {}
        arrays = self._arrays(parcel, before, files)
        rows = None
        if place is not None:
            rows = self._deliveries(shared[place], parcel.n_bytes, before)
        before.clear()  # what this step does not need leaves the store
        rest = self._put(parcel.rest, len(parcel.rest))
        if rows is None:
            in_files = self._in_files(shared)
            for batch in batches:
                task = self._asking(0 if in_files is None else in_files.memory(batch))
                yield task.remote(step, batch, None, rest, *arrays)
            return
        for batch, delivery, objects, memory in rows.orders(batches, self.width):
            task = self._asking(memory)
            yield task.remote(step, batch, delivery, rest, *arrays, *objects)
        self.n_rows += rows.n_bytes
        self.most_held = max(self.most_held, parcel.n_bytes + rows.held)

    def _asking(self, memory: int) -> Any:
        """Return the task, which Ray starts where so much memory is left."""
        return self._task.options(memory=memory) if memory else self._task

    def _in_files(self, shared: tuple[Any, ...]) -> InFiles | None:
        """Return what knows the memory of batches, if their rows are in the scratch folder."""
        sharded = next((each for each in shared if isinstance(each, Sharded)), None)
        if sharded is None or scratch.current() is None:
            return None
        nodes = Nodes(self._ray)
        return InFiles(sharded, nodes, self._limit(nodes))

    def _limit(self, nodes: Nodes) -> float:
        return _ROWS * nodes.smallest_store / nodes.most_cores

    def _arrays(self, parcel: Parcel, before: dict[str, Any], files: dict[str, Any]) -> list[Any]:
        """Put large arrays into the scratch folder if there is one, else into the store."""
        folder = scratch.current()
        if folder is not None:
            earlier, self._written = self._written, files
            return [_in_file(each, folder, earlier, files) for each in parcel.arrays]
        Nodes(self._ray).check_shared(parcel.n_bytes)
        self.most_held = max(self.most_held, parcel.n_bytes)
        return [self._kept(digest(each), each, each.nbytes, before) for each in parcel.arrays]

    def _deliveries(self, sharded: Sharded, n_shared: int, before: dict[str, Any]) -> Deliveries:
        """Put blocks into the store, and return what delivers their rows."""
        nodes = Nodes(self._ray)
        blocks = Blocks(sharded, self._number_of_blocks(sharded.matrices[0], nodes))
        nodes.check_driver(n_shared + blocks.size, self._ray.get_runtime_context().get_node_id())
        references = [
            [self._kept(key_of(each), each, size_of(each), before) for each in blocks.block(number)]
            for number in range(len(blocks))
        ]
        return Deliveries(self._ray, blocks, references, nodes, self._limit(nodes), _RETRIES)

    def _number_of_blocks(self, matrix: Matrix, nodes: Nodes) -> int:
        """Return the same for a matrix in every step, even if nodes come and go meanwhile."""
        largest = _LARGEST_BLOCK * nodes.smallest_store
        n_blocks = number_of_blocks(matrix, len(nodes.ids), largest)
        return self._n_blocks.setdefault((size_of(matrix), matrix.shape), n_blocks)

    def _kept(self, key: str, thing: Any, n_bytes: int, before: dict[str, Any]) -> Any:
        """Put something into the store, unless it is there from the step before."""
        if key not in self._stored:
            self._stored[key] = before[key] if key in before else self._put(thing, n_bytes)
        return self._stored[key]

    def _put(self, content: Any, n_bytes: int) -> Any:
        self.n_sent += n_bytes
        return self._ray.put(content)


def _in_file(
    array: Any, folder: scratch.Scratch, earlier: dict[str, Any], files: dict[str, Any]
) -> scratch.Place | None:
    """Return where an array is in the scratch folder; write it, unless it is there already."""
    if (place := folder.place_of(array)) is not None:
        return place
    key = digest(array)
    copy = files.get(key, earlier.get(key))
    if copy is None or folder.place_of(copy) is None:  # it may be in the folder of another block
        copy = folder.write([array], array.dtype)
    files[key] = copy
    return folder.place_of(copy)


_latest: tuple[str, Any] = "", None  # of this worker: its scratch memory and tables are used again


def work(
    step: Step, batch: list[Any], delivery: Delivery | None, rest: bytes, *objects: Any
) -> list[Parcel]:
    """Return the results of some items: what Ray runs in a worker, with one thread."""
    global _latest
    check_version(step.version)
    arrays, rows = objects[: len(step.frozen)], objects[len(step.frozen) :]
    if _latest[0] != step.name:
        _latest = "", None  # what it holds leaves the store before the next comes
        _latest = step.name, unpack(Parcel(rest, list(map(_opened, arrays)), step.frozen))
    function, shared = _latest[1]
    if delivery is not None:
        part = delivered(batch, delivery, rows, _fetched)
        shared = tuple(part if i == step.place else each for i, each in enumerate(shared))
    with parallel.at_most(1), parallel.one_thread_each:
        return [pack(function(item, *shared)) for item in batch]


def check_version(version: str) -> None:
    """Refuse to work for a program that has another version than this worker."""
    if version != (here := versions()["umpteen"]):
        raise ClusterError(
            f"a node has umpteen {here}, but this program runs with {version}: install the same "
            "version on all nodes"
        )


def _opened(array: Any) -> Any:
    """Map an array that is in the scratch folder."""
    if not isinstance(array, scratch.Place):
        return array
    try:
        return array.opened()
    except (OSError, ValueError) as problem:
        raise ClusterError(
            f"a node cannot read {array.path} ({problem}): use a scratch folder that all machines "
            "see under the same path, such as one on a network drive"
        ) from problem


def _fetched(reference: Any) -> Any:
    import ray

    return ray.get(reference)
