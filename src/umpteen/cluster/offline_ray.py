"""Shards as tasks of a Ray cluster.

A task is a whole shard, since then an output file belongs to one input file and a restart can tell
which are finished; blocks of Ray Data belong to none. Tasks without state are enough: Ray sends
them to another worker when one dies, and processes of one machine share the mapped model.
"""

from collections.abc import Callable, Generator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from umpteen import parallel
from umpteen.cluster.connecting import connected
from umpteen.cluster.offline_answers import Answered, Draft, Recipe, Run, answer_shard
from umpteen.cluster.offline_shards import Shard
from umpteen.errors import ModelChangedError, ShardsError
from umpteen.extras import require
from umpteen.storage import load
from umpteen.storage.folder import read_manifest

_RETRIES = 3  # after workers or machines died


def run_on(address: str) -> Run:
    """Return a function that predicts shards on a cluster, in the order in which they finish."""

    def run(
        shards: list[Shard], recipe: Recipe, drafts: Path, report: Callable[[Shard, int], object]
    ) -> Generator[Answered, None, None]:
        ray = require("ray", "cluster")
        with connected(ray, address):
            task = ray.remote(num_cpus=1, max_retries=_RETRIES, retry_exceptions=False)(_task)
            left, running = iter(shards), dict[Any, Shard]()
            try:
                while True:
                    width = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
                    for shard in islice(left, max(0, width - len(running))):
                        running[task.remote(shard, recipe, drafts)] = shard
                    if not running:
                        return
                    (done,), _ = ray.wait(list(running), num_returns=1)
                    yield running.pop(done), _result(ray, done)
            finally:
                for reference in running:
                    ray.cancel(reference, force=True)

    return run


def _task(shard: Shard, recipe: Recipe, drafts: Path) -> Draft | Exception:
    """What a worker does, on one thread."""
    with parallel.at_most(1):
        return answer_shard(_model(recipe.model, recipe.checksum), shard, recipe, drafts)


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
    try:
        return ray.get(reference)  # type: ignore[no-any-return]
    except ray.exceptions.RayTaskError as problem:
        raise problem.cause from None
    except ray.exceptions.RayError as problem:
        return ShardsError(
            f"its worker died {_RETRIES + 1} times ({' '.join(str(problem).split()):.200}): give "
            "the machines more memory, or fewer cores to Ray"
        )
