"""Adam for networks with tables of which a batch touches few rows."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from umpteen.errors import ParameterError
from umpteen.validation import check_number


class RowAdam(Optimizer):
    """Adam for whole networks; in tables, it updates only the rows that have a gradient.

    With `sparse=True`, the tables of heads and of `torch.nn.Embedding` have sparse gradients. Rows
    that a batch does not use stay as they are, and so do their moments, as in
    `torch.optim.SparseAdam`, but in half to a third of its time. All other parameters are updated
    as by `torch.optim.AdamW`, with `weight_decay`. So one optimizer is enough.

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
        for name, value in (("lr", lr), ("eps", eps), ("weight_decay", weight_decay)):
            check_number(value, name)
        if not all(0 <= beta < 1 for beta in betas):
            raise ParameterError(f"betas={betas!r} are not possible: expected 0 or more, below 1")
        super().__init__(
            params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        )

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


def _move_rows(
    table: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]
) -> None:
    (decay, square_decay), n_steps = group["betas"], state["step"]
    gradient = gradient.coalesce()
    rows, values = gradient.indices()[0], gradient.values()
    first = state["first"].index_select(0, rows).lerp_(values, 1 - decay)
    second = state["second"].index_select(0, rows).mul_(square_decay)
    second.addcmul_(values, values, value=1 - square_decay)
    state["first"].index_copy_(0, rows, first)
    state["second"].index_copy_(0, rows, second)
    rate = group["lr"] * (1 - square_decay**n_steps) ** 0.5 / (1 - decay**n_steps)
    table.index_add_(0, rows, first.div_(second.sqrt_().add_(group["eps"])), alpha=-rate)


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
