"""How weights move: optimizers, the learning rate over time, the length of gradients."""

import math
from collections.abc import Iterable
from numbers import Real

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from umpteen.errors import ParameterError
from umpteen.neural.ranks import Ranks
from umpteen.neural.row_adam import RowAdam

OPTIMIZERS = ("adamw", "sgd")
SCHEDULES = ("cosine", "constant")


def make_optimizers(
    network: nn.Module, name: str, learning_rate: float, weight_decay: float
) -> list[Optimizer]:
    """Return an optimizer for tables with sparse gradients, if there are any, and one for the rest.

    Tables are moved by sparse Adam (or SGD without momentum), which only touches the rows of a
    batch; weight decay is for matrices.
    """
    tables = _tables(network)
    in_tables = {id(table) for table in tables}
    learned = [each for each in network.parameters() if each.requires_grad]
    rest = [each for each in learned if id(each) not in in_tables]
    matrices = {"params": [each for each in rest if each.ndim > 1], "weight_decay": weight_decay}
    vectors = {"params": [each for each in rest if each.ndim <= 1], "weight_decay": 0.0}
    groups = [group for group in (matrices, vectors) if group["params"]]
    made: list[Optimizer] = []
    if groups and name == "adamw":
        on_cpu = all(each.device.type == "cpu" for each in rest)
        made.append(AdamW(groups, lr=learning_rate, fused=on_cpu))
    elif groups:
        made.append(SGD(groups, lr=learning_rate, momentum=0.9))
    if tables and name == "adamw":
        made.append(RowAdam(tables, learning_rate))
    elif tables:
        made.append(SGD(tables, lr=learning_rate))
    return made


def rate_factor(step: int, n_steps: int, schedule: str, warmup: float) -> float:
    """Return the factor of the learning rate: up to 1 in the warm-up, then down, or constant.

    >>> [round(rate_factor(step, 6, "cosine", 0.34), 2) for step in range(6)]
    [0.5, 1.0, 1.0, 0.85, 0.5, 0.15]
    """
    n_warm = int(warmup * n_steps)
    if step < n_warm:
        return (step + 1) / n_warm
    if schedule == "constant":
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * (step - n_warm) / max(1, n_steps - n_warm)))


def set_rate(optimizers: Iterable[Optimizer], rate: float) -> None:
    """Use this learning rate from now on."""
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = rate


def clip_gradients(
    parameters: Iterable[Tensor] | Tensor,
    limit: float,
    sharded: Iterable[Tensor] = (),
    ranks: Ranks | None = None,
) -> Tensor:
    """Scale gradients so that the norm of all of them is at most `limit`; return the norm before.

    This is `torch.nn.utils.clip_grad_norm_` for gradients that may be sparse. If several processes
    train, `ranks` are these processes, and each has its own rows of the `sharded` parameters.

    >>> weights = nn.Parameter(torch.zeros(2))
    >>> weights.grad = torch.tensor([3.0, 4.0])
    >>> clip_gradients([weights], 1.0), weights.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    if not isinstance(limit, Real | Tensor) or not limit >= 0:
        raise ParameterError(f"limit={limit!r} is not possible: use a number, 0 or more")
    values, held = _values_of(parameters), _values_of(sharded)
    every, lengths = [*values, *held], [value.norm() for value in values]
    if ranks is not None and ranks.are_many:
        squares = ranks.sum(sum(float(value.double().square().sum()) for value in held))
        lengths += [value.new_tensor(squares**0.5) for value in every[:1]]
    else:
        lengths += [value.norm() for value in held]
    if not every:
        return torch.zeros(())
    length: Tensor = torch.stack(lengths).norm()
    factor = (limit / length.clamp(min=1e-12)).clamp(max=1.0)
    for value in every:
        value.mul_(factor)
    return length


def _values_of(parameters: Iterable[Tensor] | Tensor) -> list[Tensor]:
    """The numbers of gradients, which may be changed in place."""
    values: list[Tensor] = []
    if isinstance(parameters, Tensor):  # it has no rows with gradients
        parameters = [parameters]
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad = (
                parameter.grad.coalesce() if parameter.grad.is_sparse else (parameter.grad)
            )
            values.append(
                parameter.grad._values() if parameter.grad.is_sparse else parameter.grad  # type: ignore[no-untyped-call]
            )
    return values


def _tables(network: nn.Module) -> list[Tensor]:
    return [
        module.weight
        for module in network.modules()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.sparse
        if module.weight.requires_grad
    ]
