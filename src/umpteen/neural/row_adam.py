"""Adam for networks with tables of which a batch touches few rows."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from umpteen.errors import ParameterError
from umpteen.kernels.row_adam import move_rows
from umpteen.parallel import run
from umpteen.validation import check_number

_STATE = {"step", "first", "second"}  # of a parameter
_ENTRIES_OF_A_THREAD = 2**17  # of rows; with fewer, starting it takes longer than their update


class RowAdam(Optimizer):
    """Adam for whole networks; in tables, it updates only the rows that have a gradient.

    With `sparse=True`, the tables of heads and of `torch.nn.Embedding` have sparse gradients. Rows
    that a batch does not use stay as they are, and so do their moments, as in
    `torch.optim.SparseAdam`. All other parameters are updated as by `torch.optim.AdamW`, with
    `weight_decay`. So one optimizer is enough.

    >>> head = torch.nn.Embedding(1000, 8, sparse=True)
    >>> optimizer = RowAdam(head.parameters(), lr=0.01)
    >>> head(torch.tensor([3, 5])).sum().backward()
    >>> optimizer.step()
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        _check_settings(defaults)
        super().__init__(params, defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings of their own; see `torch.optim.Optimizer`."""
        if isinstance(param_group, dict):
            _check_settings({**self.defaults, **param_group})
        super().add_param_group(param_group)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a `state_dict` of another `RowAdam`; see `torch.optim.Optimizer`."""
        groups, states = state_dict["param_groups"], state_dict["state"].values()
        if not all(set(self.defaults) <= set(group) for group in groups) or not all(
            set(state) == _STATE for state in states
        ):
            raise ParameterError(
                "this state_dict is of another optimizer: give one of umpteen.neural.RowAdam, or "
                "begin without it"
            )
        for group in groups:
            _check_settings(group)
        super().load_state_dict(state_dict)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Take one step; return the loss that `closure` returns, if it is given."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group)
        return loss

    def _move(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state.update(
                step=0, first=torch.zeros_like(parameter), second=torch.zeros_like(parameter)
            )
        state["step"] += 1
        move = _move_rows if gradient.is_sparse else _move_all
        move(parameter, gradient, state, group)


def _check_settings(settings: dict[str, Any]) -> None:
    for name in ("lr", "eps", "weight_decay"):
        check_number(settings[name], name)
    betas = settings["betas"]
    is_pair = isinstance(betas, Sequence) and not isinstance(betas, str) and len(betas) == 2
    if not is_pair or not all(_is_share(beta) for beta in betas):
        raise ParameterError(
            f"betas={betas!r} are not possible: expected two numbers, 0 or more, below 1"
        )


def _is_share(value: Any) -> bool:
    return isinstance(value, Real | Tensor) and bool(0 <= value < 1)  # type: ignore[operator]


def _move_rows(
    table: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
) -> None:
    (decay, square_decay), n_steps = group["betas"], state["step"]
    rate = group["lr"] * (1 - square_decay**n_steps) ** 0.5 / (1 - decay**n_steps)
    tensors, shares = (table, state["first"], state["second"]), (1 - decay, 1 - square_decay)
    if all(_suits_kernel(each) for each in tensors) and gradient.dense_dim() == table.ndim - 1:
        _move_by_kernel(tensors, gradient, (*shares, rate, group["eps"]))
    else:
        _move_by_torch(tensors, gradient.coalesce(), (*shares, rate, group["eps"]))


def _suits_kernel(table: Tensor) -> bool:
    return table.device.type == "cpu" and table.dtype == torch.float32 and table.is_contiguous()


def _move_by_kernel(
    tensors: tuple[Tensor, Tensor, Tensor], gradient: Tensor, settings: tuple[float, ...]
) -> None:
    """Go through the rows once; equal rows need not be added up before."""
    rows, order = gradient._indices()[0].sort(stable=True)  # type: ignore[no-untyped-call]
    if not len(rows):
        return
    if rows[0] < 0 or rows[-1] >= len(tensors[0]):
        raise IndexError(f"a gradient has rows {rows[0]} to {rows[-1]}, of {len(tensors[0]):,}")
    values = gradient._values()  # type: ignore[no-untyped-call]
    arrays = [each.detach().view(len(each), -1).numpy() for each in tensors]
    arrays += [rows.numpy(), order.numpy(), values.reshape(len(values), -1).numpy()]
    numbers = [np.float32(each) for each in settings]
    n_parts = min(torch.get_num_threads(), 1 + values.numel() // _ENTRIES_OF_A_THREAD)
    ends = np.linspace(0, len(rows), n_parts + 1).astype(np.int64)
    run(lambda ends: move_rows(*arrays, *ends, *numbers), list(pairwise(ends)), n_jobs=n_parts)


def _move_by_torch(
    tensors: tuple[Tensor, Tensor, Tensor], gradient: Tensor, settings: tuple[float, ...]
) -> None:
    """Do the same with tensors of any type, on any device."""
    (table, means, squares), (share, square_share, rate, eps) = tensors, settings
    rows, values = gradient.indices()[0], gradient.values()
    first = means.index_select(0, rows).lerp_(values, share)
    second = squares.index_select(0, rows).lerp_(values.square(), square_share)
    means.index_copy_(0, rows, first)
    squares.index_copy_(0, rows, second)
    table.index_add_(0, rows, first.div_(second.sqrt_().add_(eps)), alpha=-rate)


def _move_all(
    parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
) -> None:
    (decay, square_decay), n_steps = group["betas"], state["step"]
    parameter.mul_(1 - group["lr"] * group["weight_decay"])
    first = state["first"].lerp_(gradient, 1 - decay)
    second = state["second"].mul_(square_decay)
    second.addcmul_(gradient, gradient, value=1 - square_decay)
    divisor = second.sqrt().div_((1 - square_decay**n_steps) ** 0.5).add_(group["eps"])
    parameter.addcdiv_(first, divisor, value=-group["lr"] / (1 - decay**n_steps))
