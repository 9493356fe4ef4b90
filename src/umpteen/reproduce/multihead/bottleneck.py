"""Theorem 3 and Figure 5a, b: what a layer of rank 1 can tell apart, by the loss it learns from."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from umpteen.reproduce.drawing import lines
from umpteen.reproduce.parts import Cell, Part, Section, Table, Value

_N = 100
_CASES = (
    ("Frobenius, 1, with bias", "frobenius", 1, True, None),
    ("softmax, 1, with bias", "softmax", 1, True, 100.0),
    ("softmax, 1, no bias", "softmax", 1, False, None),
    ("softmax, 2, no bias", "softmax", 2, False, None),
)


@dataclass(frozen=True)
class Trace:
    """Training accuracy in % and the rank of the softmax of the outputs, at some epochs."""

    epochs: list[int]
    accuracy: list[float]
    rank: list[int]


def sections(quick: bool) -> list[Section]:
    """One section."""
    n, epochs, n_seeds = (20, 2_000, 1) if quick else (_N, 20_000, 3)
    return [
        Section(
            "Theorem 3 and Figure 5a, b, a bottleneck of one",
            "a linear network with one hidden unit stalls with the Frobenius loss, but tells all "
            "classes apart with cross-entropy and softmax, whose outputs reach full rank.",
            f"{n} Gaussian samples of {n} features, each a class of its own; two linear layers, "
            f"{epochs:,} steps of Adam on all samples, learning rate 0.2; seeds: {n_seeds}. The "
            "theorem asks for more than one hidden unit, or one and a bias.",
            partial(_bottlenecks, n, epochs, n_seeds),
        )
    ]


def _bottlenecks(n: int, epochs: int, n_seeds: int) -> Iterator[Part]:
    found = {
        name: [trained(n, hidden, loss, bias, epochs, seed) for seed in range(n_seeds)]
        for name, loss, hidden, bias, _ in _CASES
    }
    rows: list[list[Cell]] = []
    for name, _, _, _, paper in _CASES:
        last = np.array([(trace.accuracy[-1], trace.rank[-1]) for trace in found[name]])
        spread = last.std(axis=0, ddof=1) if n_seeds > 1 else (None, None)
        rows.append([
            name, Value(float(last[:, 0].mean()), spread[0], paper if n == _N else None, 1),
            Value(float(last[:, 1].mean()), spread[1], digits=1),
        ])  # fmt: skip
    yield Table(
        "After training: accuracy on the training samples in % (the paper shows curves: one that "
        "stays low, one that nears 100), and the rank of the softmax of the outputs",
        ["loss, hidden units", "accuracy", f"rank, of {n}"],
        rows,
    )
    places = [f"{epoch:,}" for epoch in found[_CASES[0][0]][0].epochs]
    for what, key in (("accuracy, %", "accuracy"), ("rank", "rank")):
        curves = {name: [float(v) for v in getattr(runs[0], key)] for name, runs in found.items()}
        yield lines(f"{what.capitalize()} (seed 0)", places, curves, x_label="epoch", y_label=what)


def trained(
    n: int, hidden: int, loss: str, bias: bool, epochs: int, seed: int, rate: float = 0.2
) -> Trace:
    """Two linear layers, `n` to `hidden` to `n`, on samples that are each a class of their own."""
    torch.manual_seed(seed)
    samples, classes = torch.randn(n, n), torch.arange(n)
    network = nn.Sequential(nn.Linear(n, hidden, bias=False), nn.Linear(hidden, n, bias=bias))
    optimizer = torch.optim.Adam(network.parameters(), rate)
    looks = sorted({0, *(int(epochs * share) for share in (0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0))})
    trace = Trace(looks, [], [])
    for epoch in range(epochs + 1):
        outputs = network(samples)
        if epoch in looks:
            _look(trace, outputs.detach(), classes)
        optimizer.zero_grad()
        _loss(outputs, classes, loss).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return trace


def _loss(outputs: Tensor, classes: Tensor, loss: str) -> Tensor:
    if loss == "softmax":
        return functional.cross_entropy(outputs, classes)
    return ((outputs - functional.one_hot(classes, outputs.shape[1])) ** 2).sum() / len(outputs)


def _look(trace: Trace, outputs: Tensor, classes: Tensor) -> None:
    right = (outputs.argmax(1) == classes).double().mean()
    trace.accuracy.append(100 * float(right))
    trace.rank.append(int(torch.linalg.matrix_rank(outputs.double().softmax(1), rtol=1e-3)))
