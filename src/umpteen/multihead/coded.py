"""CodedHead: what heads over a label code share."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from umpteen.errors import ParameterError
from umpteen.multihead.code import LabelCode
from umpteen.neural.settled import SETTINGS, SettledHead
from umpteen.neural.sizes import check_sizes
from umpteen.validation import check_k


class CodedHead(SettledHead):
    """A head whose labels have codes."""

    place_of: Tensor | None
    label_at: Tensor | None

    def __init__(self, in_features: int, code: LabelCode) -> None:
        super().__init__()
        self.in_features, self.n_labels = check_sizes(in_features, code.n_labels)
        self.register_buffer("place_of", None, persistent=False)
        self.register_buffer("label_at", None)
        self._use(code)

    def settings(self) -> dict[str, Any]:
        return {"n_labels": self.n_labels, "lengths": self.code.lengths, "loss": self.loss_name}

    def places(self, labels: Tensor) -> Tensor:
        """Return where labels stand in the code's order."""
        return labels if self.place_of is None else self.place_of[labels]

    def labels(self, places: Tensor) -> Tensor:
        """Return the labels that stand at some places."""
        return places if self.label_at is None else self.label_at[places]

    def _use(self, code: LabelCode, device: torch.device | None = None) -> None:
        self.code = code
        self.place_of = None if code.places is None else torch.from_numpy(code.places).to(device)
        self.label_at = None if code.order is None else torch.from_numpy(code.order).to(device)

    def _load_from_state_dict(
        self, state: Any, prefix: str, metadata: Any, strict: bool, missing: list[str], *more: Any
    ) -> None:
        """Take over the order of labels, whatever the order was before."""
        key = prefix + "label_at"
        if prefix + SETTINGS in state:
            order = state.get(key)
            device = next(self.parameters()).device
            device = device if order is None or device.type != "meta" else order.device
            order = None if order is None else order.cpu().numpy()
            self._use(replace(self.code, order=order), device)
        super()._load_from_state_dict(state, prefix, metadata, strict, missing, *more)
        if prefix + SETTINGS not in state and key in missing:  # weights of an earlier version
            missing.remove(key)


def code_for(
    n_labels: int | LabelCode,
    code: LabelCode | None,
    lengths: Sequence[int] | None,
    otherwise: Callable[[int], LabelCode],
) -> LabelCode:
    """Return the code that a head's arguments name, or the one it has `otherwise`."""
    given = n_labels if isinstance(n_labels, LabelCode) else code
    if given is None:
        n_labels = check_k(n_labels, "n_labels")
        return otherwise(n_labels) if lengths is None else LabelCode(n_labels, list(lengths))
    agrees = n_labels is given or n_labels == given.n_labels
    if not agrees or lengths is not None or code not in (None, given):
        raise ParameterError(
            f"the code has {given.n_labels:,} labels in heads of {given.lengths}, but n_labels="
            f"{n_labels!r} and lengths={lengths!r} were given, too: leave out what differs"
        )
    return given


def check_choice(value: str, name: str, choices: Sequence[str]) -> None:
    """Refuse a name that is none of the choices."""
    if value not in choices:
        raise ParameterError(f"{name}={value!r} is not possible: choose from {', '.join(choices)}")
