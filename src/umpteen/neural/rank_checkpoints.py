"""Checkpoints of several ranks: each writes its own rows, and all go on from the same step."""

import time
from pathlib import Path

import torch.distributed as dist

from umpteen.errors import ModelPathError
from umpteen.neural.checkpoint import Checkpoint, Keeper
from umpteen.neural.ranks import Ranks
from umpteen.neural.run import Run
from umpteen.storage.checkpoints import read_checkpoint

Step = tuple[int, int, bool]


class RankKeeper(Keeper):
    """Writes a rank's part of a run into one of two folders, in turn.

    A rank writes over its older checkpoint only when all ranks have the newer one. So there is a
    step of which all have a checkpoint, whenever they are killed.
    """

    def __init__(self, folder: Path, every: float, fingerprint: str, ranks: Ranks) -> None:
        super().__init__(None, every, fingerprint)
        self.ranks = ranks
        own = folder / f"rank-{ranks.rank}-of-{ranks.world}"
        self.folders = [own / "a", own / "b"]  # the next one to write comes first
        found, _ = ranks.together(lambda: (self._read(folder), []))
        latest = self._latest(set(found))
        if latest is not None:
            last, self.found = found[latest]
            self.folders.sort(key=lambda each: each == last)

    def save_if_due(self, run: Run) -> None:
        """Write, if the last time is long enough ago for rank 0."""
        if self.ranks.first(int(time.monotonic() - self._last >= self.every)):
            self.save(run)

    def save(self, run: Run) -> None:
        """Write now, and wait until all ranks have written."""
        self.folder = self.folders[0]
        self.folders.reverse()
        write = super().save
        self.ranks.together(lambda: (write(run), []))

    def _read(self, folder: Path) -> dict[Step, tuple[Path, Checkpoint]]:
        """The checkpoints of this rank."""
        _check_world(folder, self.ranks.world)
        found = {}
        for each in self.folders:
            checkpoint = read_checkpoint(each, Checkpoint, self.fingerprint)
            if checkpoint is not None:
                found[_step(checkpoint)] = each, checkpoint
        return found

    def _latest(self, steps: set[Step]) -> Step | None:
        """The latest step of which all ranks have a checkpoint."""
        all_steps: list[set[Step]] = [set()] * self.ranks.world
        dist.all_gather_object(all_steps, steps)
        return max(set.intersection(*all_steps), default=None)


def _step(checkpoint: Checkpoint) -> Step:
    now = checkpoint.counters
    return now["epoch"], now["batch"], now["finished"]


def _check_world(folder: Path, world: int) -> None:
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    others = [name for name in names if not name.endswith(f"-of-{world}")]
    if others:
        raise ModelPathError(
            f"checkpoint={str(folder)!r} holds {others[0]!r}, which {world} processes did not "
            "write: use as many processes as before, or choose another folder"
        )
