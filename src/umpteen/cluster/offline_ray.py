"""Shards as tasks of a Ray cluster.

A task is a whole shard, since then an output file belongs to one input file and a restart can tell
which are finished; blocks of Ray Data belong to none. Tasks without state are enough: Ray sends
them to another worker when one dies, and processes of one machine share the mapped model.
"""

from collections.abc import Callable, Generator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from umpteen import parallel
from umpteen.cluster.connecting import connected
from umpteen.cluster.engine import check_version
from umpteen.cluster.failures import translated
from umpteen.cluster.offline_answers import Answered, Draft, Recipe, Run, answer_shard
from umpteen.cluster.offline_shards import Shard
from umpteen.errors import ClusterError, ModelChangedError
from umpteen.extras import require
from umpteen.storage import load
from umpteen.storage.folder import read_manifest, versions

_RETRIES = 3  # after workers or machines died
_PAUSE = 0.5  # seconds after which the progress bar moves


def run_on(address: str) -> Run:
    """Return a function that predicts shards on a cluster, in the order in which they finish."""

    def run(
        shards: list[Shard], recipe: Recipe, drafts: Path, report: Callable[[Shard, int], object]
    ) -> Generator[Answered, None, None]:
        ray = require("ray", "cluster")
        with connected(ray, address):
            task = ray.remote(num_cpus=1, max_retries=_RETRIES, retry_exceptions=False)(_task)
            counter, version = ray.remote(num_cpus=0)(_Counter).remote(), versions()["umpteen"]
            news = _News(ray, counter)
            left, running = iter(shards), dict[Any, Shard]()
            try:
                while True:
                    width = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
                    for shard in islice(left, max(0, width - len(running))):
                        running[task.remote(shard, recipe, drafts, counter, version)] = shard
                    if not running:
                        return
                    done, _ = ray.wait(list(running), num_returns=1, timeout=_PAUSE)
                    for shard, n_bytes in news.arrived().items():
                        report(shard, n_bytes)
                    for each in done:
                        yield running.pop(each), _result(ray, each)
            finally:
                for reference in running:
                    with suppress(Exception):  # it has ended, or the cluster is gone
                        ray.cancel(reference, force=True)

    return run


class _Counter:
    """An actor that is told how many bytes of each shard were read."""

    def __init__(self) -> None:
        self._n_bytes: dict[Shard, int] = {}

    def tell(self, shard: Shard, n_bytes: int) -> None:
        self._n_bytes[shard] = n_bytes

    def news(self) -> dict[Shard, int]:
        """Return what is new since the last call."""
        found, self._n_bytes = self._n_bytes, {}
        return found


class _News:
    """What the actor was told, without waiting for it."""

    def __init__(self, ray: Any, counter: Any) -> None:
        self._ray, self._counter = ray, counter
        self._asked = counter.news.remote()

    def arrived(self) -> dict[Shard, int]:
        """Return what is new; nothing if the actor has not answered, or died with its node."""
        if not self._ray.wait([self._asked], timeout=0)[0]:
            return {}
        asked, self._asked = self._asked, self._counter.news.remote()
        try:
            return self._ray.get(asked)  # type: ignore[no-any-return]
        except self._ray.exceptions.RayError:
            return {}


def _task(
    shard: Shard, recipe: Recipe, drafts: Path, counter: Any, version: str
) -> Draft | Exception:
    """What a worker does, on one thread."""
    check_version(version)

    def report(n_bytes: int) -> None:
        counter.tell.remote(shard, n_bytes)

    with parallel.at_most(1), parallel.one_thread_each:
        return answer_shard(_model(recipe.model, recipe.checksum), shard, recipe, drafts, report)


@lru_cache(maxsize=1)
def _model(folder: str, checksum: int) -> Any:
    """The model, mapped once per process; the driver verified it."""
    if read_manifest(Path(folder))["checksum"] != checksum:
        raise ModelChangedError(
            f"{folder} was changed, or is another model on this machine: run it again when all "
            "machines have the same model there"
        )
    return load(folder, verify=False)


def _result(ray: Any, reference: Any) -> Draft | Exception:
    """Return the draft of a shard, or why there is none; raise what all shards would have."""
    try:
        with translated(ray):
            return ray.get(reference)  # type: ignore[no-any-return]
    except ClusterError as problem:
        if problem.__cause__ is None:  # of the task itself
            raise
        return problem
