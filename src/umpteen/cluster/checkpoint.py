"""Results of finished tasks on disk, so that a fit whose process was killed goes on from there."""

import os
import pickle
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from umpteen import parallel
from umpteen.cluster.journal import Journal
from umpteen.cluster.parcels import fingerprint
from umpteen.errors import NotWritableError
from umpteen.storage.folder import versions

_OURS = re.compile(r"[0-9a-f]{32}\.tasks")


class Checkpointed:
    """An engine that keeps the results of another one, and runs no task twice.

    A result is found again by its function, its item and all that the tasks share, to the bit:
    other data, settings or versions never get it.
    """

    def __init__(self, engine: parallel.Engine, folder: Path, pickler: Any = pickle) -> None:
        self._engine, self._folder, self._pickler = engine, folder, pickler

    @property
    def width(self) -> int:
        """The number of tasks that run at the same time."""
        return self._engine.width

    def map(
        self, function: Callable[..., Any], items: list[Any], shared: tuple[Any, ...]
    ) -> Generator[Any, None, None]:
        """Yield `function(item, *shared)` for each item, in order, from disk where it is there."""
        step, keys = self._key((function, shared)), [self._key(item) for item in items]
        with Journal(self._folder / f"{step}.tasks") as journal:
            is_done = [key in journal for key in keys]
            rest = [item for item, done in zip(items, is_done, strict=True) if not done]
            with closing(self._engine.map(function, rest, shared)) as arriving:
                for key, done in zip(keys, is_done, strict=True):
                    if done:
                        yield journal.read(key)
                        continue
                    result = next(arriving)
                    journal.append(key, result)
                    yield result

    def _key(self, value: Any) -> str:
        return fingerprint((versions(), value), self._pickler)


@contextmanager
def checkpointed(
    engine: parallel.Engine, folder: str | os.PathLike[str], pickler: Any = pickle
) -> Iterator[Checkpointed]:
    """Yield an engine that keeps results in a folder until the block ends without an error."""
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise NotWritableError(
            f"checkpoint={str(folder)!r} cannot be a folder: {problem.strerror}"
        ) from problem
    yield Checkpointed(engine, place, pickler)
    for name in os.listdir(place):
        if _OURS.fullmatch(name):
            (place / name).unlink()
    if not os.listdir(place):
        place.rmdir()
