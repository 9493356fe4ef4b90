"""The weights of a saved network, brought into a network that is built anew."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from umpteen.errors import ModelCorruptError, UmpteenError
from umpteen.neural.device import shared


class StoredWeights:
    """Arrays by the names that a network's `state_dict` has for them."""

    def __init__(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self.arrays = arrays

    def into(self, build: Callable[[], Any], prefix: str) -> Any:
        """Return the module that `build` makes with those weights whose names begin so.

        It is built without memory of its own: nothing is drawn, and sizes that are not those of
        the weights are found before they are taken.
        """
        mine = {
            name.removeprefix(prefix): array
            for name, array in self.arrays.items()
            if name.startswith(prefix)
        }
        try:
            with torch.device("meta"):
                module: nn.Module = build()
            _check_types(module, mine)
            module.load_state_dict(
                {name: shared(array) for name, array in mine.items()}, assign=True
            )
        except UmpteenError as error:
            raise ModelCorruptError(f"the network of this model cannot be built: {error}") from None
        except (
            RuntimeError, ValueError, TypeError, OverflowError, LookupError, AttributeError,
        ) as error:  # fmt: skip
            raise ModelCorruptError(
                f"the weights of this model do not fit its network ({error}): copy its folder again"
            ) from error
        return module


def _check_types(module: nn.Module, arrays: dict[str, npt.NDArray[Any]]) -> None:
    for name, tensor in module.state_dict().items():
        expected = str(tensor.dtype).removeprefix("torch.")
        if name in arrays and arrays[name].dtype != np.dtype(expected):
            raise ModelCorruptError(f"{name} has type {arrays[name].dtype}, expected {expected}")
