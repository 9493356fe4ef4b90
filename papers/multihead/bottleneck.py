"""Theorem 3 and Figure 5a, b: what a layer of rank 1 can tell apart, by the loss it learns from."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.drawing import lines

_N = 100
_RATE = 1.0
_CASES = (
    ("Frobenius, 1, with bias", "frobenius", 1, True, None),
    ("softmax, 1, with bias", "softmax", 1, True, 100.0),
    ("softmax, 1, no bias", "softmax", 1, False, None),
    ("softmax, 2, no bias", "softmax", 2, False, None),
)


@dataclass(frozen=True)
class Trace:
    """At some steps, for each seed: training accuracy in %, and the rank of the softmax."""

    steps: list[int]
    accuracy: list[npt.NDArray[np.float64]] = field(default_factory=list)
    rank: list[npt.NDArray[np.float64]] = field(default_factory=list)


def sections(quick: bool) -> list[Section]:
    """One section."""
    n, steps, n_seeds = (20, 2_000, 1) if quick else (_N, 20_000, 3)
    return [
        Section(
            "Theorem 3 and Figure 5a, b, a bottleneck of one",
            "a linear network with one hidden unit stalls with the Frobenius loss, but tells all "
            "classes apart with cross-entropy and softmax, whose outputs reach full rank.",
            f"{n} Gaussian samples of {n} features, each a class of its own; two linear layers, "
            f"{steps:,} steps of Adam on all samples at once, learning rate {_RATE:g}, falling as "
            f"a cosine; seeds: {n_seeds}. The theorem asks for more than one hidden unit, or one "
            "and a bias.",
            partial(_bottlenecks, n, steps, n_seeds),
        )
    ]


def _bottlenecks(n: int, steps: int, n_seeds: int) -> Iterator[Block]:
    found = {
        name: trained(n, hidden, loss, bias, steps, n_seeds)
        for name, loss, hidden, bias, _ in _CASES
    }
    rows: list[list[Cell]] = []
    for name, _, _, _, paper in _CASES:
        trace = found[name]
        rows.append([
            name, over_seeds(trace.accuracy[-1], paper if n == _N else None),
            over_seeds(trace.rank[-1]),
        ])  # fmt: skip
    yield Table(
        "After training: accuracy on the training samples in % (the paper shows curves: one that "
        "stays low, one that nears 100), and the rank of the softmax of the outputs",
        ["loss, hidden units", "accuracy", f"rank, of {n}"],
        rows,
    )
    places = [f"{step:,}" for step in found[_CASES[0][0]].steps]
    for what, key in (("accuracy, %", "accuracy"), ("rank", "rank")):
        curves = {name: [float(v[0]) for v in getattr(trace, key)] for name, trace in found.items()}
        yield lines(f"{what.capitalize()} (seed 0)", places, curves, x_label="step", y_label=what)
    yield (
        "One number and a bias can tell any number of classes apart: where a sample of class y has "
        "the number t, weights 2t and biases -t^2 are greatest for y. No bias: only the two "
        "outermost numbers can win. Two numbers without a bias: on a circle, all can."
    )


def trained(
    n: int, hidden: int, loss: str, bias: bool, steps: int, n_seeds: int, rate: float = _RATE
) -> Trace:
    """Two linear layers, `n` to `hidden` to `n`, on samples that are each a class of their own.

    All seeds are trained side by side: a step is a handful of small products.
    """
    generators = [torch.Generator().manual_seed(seed) for seed in range(n_seeds)]

    def normal(*shape: int) -> Tensor:  # (seeds, ...)
        return torch.stack([torch.randn(shape, generator=each) for each in generators])

    samples, first, second = normal(n, n), normal(n, hidden) * n**-0.5, normal(hidden, n)
    biases = torch.zeros(n_seeds, 1, n)
    weights = [first, second, biases] if bias else [first, second]
    optimizer = torch.optim.Adam([w.requires_grad_() for w in weights], rate, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps + 1)
    looks = sorted({0, *(int(steps * share) for share in (0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0))})
    trace = Trace(looks)
    for step in range(steps + 1):
        outputs = samples @ first @ second + biases
        if step in looks:
            _look(trace, outputs.detach())
        optimizer.zero_grad()
        _loss(outputs, loss).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    return trace


def _loss(outputs: Tensor, loss: str) -> Tensor:
    """The sum over seeds; sample i is of class i."""
    n_seeds, n, _ = outputs.shape
    if loss == "softmax":
        classes = torch.arange(n).repeat(n_seeds)
        return n_seeds * functional.cross_entropy(outputs.flatten(0, 1), classes)
    return ((outputs - torch.eye(n)) ** 2).sum() / n


def _look(trace: Trace, outputs: Tensor) -> None:
    right = (outputs.argmax(2) == torch.arange(outputs.shape[1])).double().mean(1)
    trace.accuracy.append(100 * right.numpy())
    ranks = torch.linalg.matrix_rank(outputs.double().softmax(2), rtol=1e-3)
    trace.rank.append(ranks.double().numpy())
