"""Where and how PyTorch computes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from umpteen.errors import ParameterError
from umpteen.parallel import ProcessSetting

_GENERATORS = threading.RLock()  # PyTorch's random numbers belong to the process
_N_THREADS = ProcessSetting(torch.get_num_threads, torch.set_num_threads)
_THREAD = threading.local()


def find_device(name: str) -> torch.device:
    """Return the device of that name; `"auto"` is a graphics card where there is one.

    >>> find_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.zeros(0, device=name).device
        if device.type == "meta":
            raise RuntimeError("it computes no values")
        return device
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = str(error).partition("\n")[0]
        raise ParameterError(
            f"device={name!r} is not possible here ({reason}): use 'auto', 'cpu' or 'cuda'"
        ) from None


@contextmanager
def one_thread() -> Iterator[None]:
    """Run PyTorch on one thread: with more, its sums differ in their last bits.

    PyTorch has a number of threads for each thread, and one for the process that new threads
    inherit. So every thread that computes must enter its own block. Blocks may overlap and nest;
    on exit, each thread gets the number that the process had before the first block.
    """
    if getattr(_THREAD, "is_inside", False):
        yield
        return
    with _N_THREADS as before:
        _THREAD.is_inside = True
        torch.set_num_threads(1)
        try:
            yield
        finally:
            _THREAD.is_inside = False
            torch.set_num_threads(before)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Draw random numbers by a seed in the block, and as before after it; one block at a time."""
    cards = [device] if device.type == "cuda" else []
    with _GENERATORS, torch.random.fork_rng(devices=cards):
        torch.manual_seed(seed)
        yield


def generator_states(device: torch.device) -> dict[str, npt.NDArray[np.uint8]]:
    """Return the states of the random number generators."""
    states = {"cpu": torch.get_rng_state().numpy()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device).numpy()
    return states


def set_generator_states(states: dict[str, npt.NDArray[np.uint8]], device: torch.device) -> None:
    """Set the states of the generators, as they were returned."""
    torch.set_rng_state(torch.from_numpy(np.array(states["cpu"])))
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(torch.from_numpy(np.array(states["cuda"])), device)


def shared(array: npt.NDArray[Any]) -> Tensor:
    """Return a tensor in the memory of `array`, only to be read.

    PyTorch knows no read-only tensors and warns of such arrays; those of a loaded model may be.
    """
    return torch.from_numpy(array if array.flags.writeable else np.asarray(_Writable(array)))


class _Writable:
    """An array's memory, said to be writable."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self.__array_interface__ = {
            **array.__array_interface__,
            "data": (array.ctypes.data, False),
        }
        self.array = array  # keeps the memory
