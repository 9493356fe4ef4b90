"""SettledHead: weights that are refused by a head with other settings."""

import json
from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor

from umpteen.errors import ParameterError
from umpteen.neural.head import Head

SETTINGS = "_extra_state"  # PyTorch's name in a `state_dict` for what is neither weight nor buffer


class SettledHead(Head):
    """A head whose weights have a meaning only together with some settings.

    These are in the `state_dict`, too, as the bytes of their JSON. Weights of other settings may
    have the same shapes: they are refused.
    """

    free_settings: ClassVar[tuple[str, ...]] = ()  # they may differ: weights mean the same

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return what weights depend on."""

    def get_extra_state(self) -> Tensor:
        text = json.dumps(self.settings(), sort_keys=True)
        return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)

    def set_extra_state(self, state: Tensor) -> None:
        own = self.settings()
        try:
            found = json.loads(bytes(state.tolist()))
        except (ValueError, TypeError, AttributeError, RecursionError):
            found = "settings that are damaged"
        if not isinstance(found, dict) or self._decisive(found) != self._decisive(own):
            raise ParameterError(
                f"these weights are of a {type(self).__name__} with {found}, but this one has "
                f"{own}: make it with the same settings"
            )

    def _decisive(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {name: each for name, each in settings.items() if name not in self.free_settings}

    def _load_from_state_dict(
        self, state: Any, prefix: str, metadata: Any, strict: bool, missing: list[str], *more: Any
    ) -> None:
        super()._load_from_state_dict(state, prefix, metadata, strict, missing, *more)
        if prefix + SETTINGS in missing:  # weights of an earlier version
            missing.remove(prefix + SETTINGS)
