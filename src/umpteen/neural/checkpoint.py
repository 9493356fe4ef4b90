"""Checkpoints: a run written down in a folder, and continued to the same bits.

Arrays are written from the memory of the tensors, piece by piece: a checkpoint needs no memory.
"""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.optim import Optimizer

from umpteen import storage
from umpteen.errors import ModelPathError
from umpteen.neural.device import generator_states, set_generator_states, shared
from umpteen.neural.run import Counters, Run
from umpteen.storage.checkpoints import read_checkpoint

Array = npt.NDArray[Any]


@storage.storable
@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A run on disk."""

    fingerprint: str
    seed: int
    counters: dict[str, Any]
    weights: dict[str, Array]
    optimizers: list[list[dict[str, Any]]]  # for each its parameters' states
    best: dict[str, Array] | None
    average: dict[str, Array] | None
    generators: dict[str, Array]

    @classmethod
    def of(cls, run: Run, fingerprint: str, seed: int, device: torch.device) -> "Checkpoint":
        """Return the run as it is now, in the memory of its tensors."""
        return cls(
            fingerprint,
            seed,
            asdict(run.counters),
            arrays_of(run.network.state_dict()),
            [_optimizer_state(optimizer) for optimizer in run.optimizers],
            None if run.best is None else arrays_of(run.best),
            None if run.average is None else arrays_of(run.average),
            generator_states(device),
        )

    def restore(self, run: Run, device: torch.device) -> None:
        """Make `run`, a new one, the one that was written down."""
        run.counters = Counters(**self.counters)
        run.network.load_state_dict({name: shared(each) for name, each in self.weights.items()})
        for optimizer, states in zip(run.optimizers, self.optimizers, strict=True):
            _set_optimizer_state(optimizer, states)
        run.best = None if self.best is None else _tensors(self.best, device)
        run.average = None if self.average is None else _tensors(self.average, device)
        set_generator_states(self.generators, device)


class Keeper:
    """Writes a run into a folder every so often; without a folder it does nothing."""

    def __init__(self, folder: Path | None, every: float, fingerprint: str = "") -> None:
        self.folder, self.every, self.fingerprint = folder, every, fingerprint
        self.found = None if folder is None else read_checkpoint(folder, Checkpoint, fingerprint)
        self.seed, self.device = 0, torch.device("cpu")
        self._last = time.monotonic()

    def begin(self, run: Run, seed: int, device: torch.device) -> None:
        """Continue the run of the folder, or write down the beginning of this one."""
        self.seed, self.device = seed, device
        if self.found is not None:
            self.found.restore(run, device)
            self.found = None
        else:
            self.save(run)  # a folder that cannot be written to shows now, not in an hour

    def check_epochs(self, epochs: int) -> None:
        """Refuse fewer epochs than there were already: a run can only have more."""
        done = 0 if self.found is None else int(self.found.counters["epoch"])
        if done > epochs:
            raise ModelPathError(
                f"the checkpoint in {str(self.folder)!r} has {done:,} epochs, more than "
                f"epochs={epochs:,}: use at least as many, or another folder"
            )

    def save_if_due(self, run: Run) -> None:
        """Write, if the last time is long enough ago."""
        if time.monotonic() - self._last >= self.every:
            self.save(run)

    def save(self, run: Run) -> None:
        """Write now; a kill in between leaves the checkpoint before."""
        if self.folder is not None:
            made = Checkpoint.of(run, self.fingerprint, self.seed, self.device)
            storage.save(made, self.folder)
            self._last = time.monotonic()


def arrays_of(tensors: dict[str, Tensor]) -> dict[str, Array]:
    """Return arrays in the memory of the tensors, where that is not a graphics card's."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def _tensors(arrays: dict[str, Array], device: torch.device) -> dict[str, Tensor]:
    return {name: torch.from_numpy(np.array(array)).to(device) for name, array in arrays.items()}


def _optimizer_state(optimizer: Optimizer) -> list[dict[str, Any]]:
    return [
        {
            name: value.detach().cpu().numpy() if isinstance(value, Tensor) else value
            for name, value in optimizer.state.get(parameter, {}).items()
        }
        for group in optimizer.param_groups
        for parameter in group["params"]
    ]


def _set_optimizer_state(optimizer: Optimizer, states: list[dict[str, Any]]) -> None:
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    for parameter, state in zip(parameters, states, strict=True):
        if state:
            optimizer.state[parameter] = {
                name: _as_state(value, parameter.device) for name, value in state.items()
            }


def _as_state(value: Any, device: torch.device) -> Any:
    """Counts of steps stay where they are: not on a graphics card."""
    if not isinstance(value, np.ndarray):
        return value
    tensor = torch.from_numpy(np.array(value))
    return tensor.to(device) if tensor.ndim else tensor
