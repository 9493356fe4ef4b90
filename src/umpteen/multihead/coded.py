"""CodedHead: what heads over a label code share."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from umpteen.errors import ParameterError
from umpteen.multihead.code import LabelCode
from umpteen.neural import Head
from umpteen.validation import check_k


class CodedHead(Head):
    """A head whose labels have codes."""

    place_of: Tensor | None
    label_at: Tensor | None

    def __init__(self, in_features: int, code: LabelCode) -> None:
        super().__init__()
        self.in_features = check_k(in_features, "in_features")
        self.n_labels = code.n_labels
        self.code = code
        places = None if code.places is None else torch.from_numpy(code.places)
        order = None if code.order is None else torch.from_numpy(code.order)
        self.register_buffer("place_of", places, persistent=False)
        self.register_buffer("label_at", order, persistent=False)

    def places(self, labels: Tensor) -> Tensor:
        """Return where labels stand in the code's order."""
        return labels if self.place_of is None else self.place_of[labels]

    def labels(self, places: Tensor) -> Tensor:
        """Return the labels that stand at some places."""
        return places if self.label_at is None else self.label_at[places]


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
