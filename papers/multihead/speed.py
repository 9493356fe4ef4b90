"""Figure 7a and b: time and memory against the number of classes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from papers.contents import Block, Cell, Section, Table, Value
from papers.drawing import lines
from papers.progress import progress_bar

NAMES = ("full", "MHP", "MHC", "MHS")
_SIZES = (1_000, 10_000, 100_000, 1_000_000)
_PAPER_RATIOS = {"MHP": 17.0, "MHC": 4.0, "MHS": 8.0}  # at a million labels, in the text

Costs: TypeAlias = dict[str, float] | None  # None: more memory than there is
Grid: TypeAlias = dict[tuple[str, int], Costs]

_ROOT = Path(__file__).parents[2]


def sections(quick: bool) -> list[Section]:
    """The heads alone, and what more threads give."""
    sizes, steps = (_SIZES[:2], 2) if quick else (_SIZES, 5)
    claim = (
        "with a million labels MHP is 17 times as fast as a full layer, MHC 4 times, MHS 8 times; "
        "MHP saves 4 GB of memory, MHS needs as much as a full layer, in a whole network on a V100."
    )
    what = f"Batches of 128, 512 features, one class per sample; medians of {steps}. Each head has "
    return [
        Section(
            "Figure 7, heads alone",
            claim,
            what
            + "a process of its own; random features, plain SGD. benchmarks/heads.py measures a "
            "whole network, too.",
            partial(_costs, sizes, steps),
        ),
        Section(
            "Threads",
            "not of the paper, which measures on a graphics card: whether all cores are used.",
            f"The heads alone with {sizes[-2]:,} labels, as above, with one thread and with all. "
            "NeuralClassifier trains with one, so that a seed gives the same bits on any machine.",
            partial(_threads, sizes[-2], steps),
        ),
    ]


def _costs(sizes: Sequence[int], steps: int) -> Iterator[Block]:
    found: Grid = {}
    with progress_bar("Measuring", len(sizes) * len(NAMES)) as advance:
        for n_labels in sizes:
            for name in NAMES:
                found[name, n_labels] = in_own_process(name, n_labels, steps)
                advance()
    for n_labels in sizes:
        yield _table(found, n_labels)
    yield (
        "Weights, without biases, with d features: full and MHS d x labels; MHP d x the sum of its "
        "heads' lengths; MHC d x groups + d x hidden + labels x hidden, so that it saves time and "
        "no more than half of the memory here (hidden is 256)."
    )
    yield from _figures(found, sizes)
    if None in found.values():
        yield "-: needs more memory than is free here."


def in_own_process(name: str, n_labels: int, steps: int, threads: int | None = None) -> Costs:
    """What `worker.measure` gives, with all threads if not told; None: too little memory."""
    numbers = (n_labels, steps, threads or os.cpu_count())
    command = [sys.executable, "-m", "papers.multihead.worker", name, *map(str, numbers)]
    run = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
    if run.returncode == 0:
        costs: dict[str, float] = json.loads(run.stdout)
        return costs
    if "memory" in run.stderr:
        return None
    raise RuntimeError(f"{' '.join(command)} failed:\n{run.stderr}")


def _table(found: Grid, n_labels: int) -> Table:
    full = found["full", n_labels]
    rows: list[list[Cell]] = []
    for name in NAMES:
        costs = found[name, n_labels]
        if costs is None:
            rows.append([name, *[None] * 8])
            continue
        printed = _PAPER_RATIOS.get(name) if n_labels == 1_000_000 else None
        rows.append([
            name, f"{costs['parameters']:,}", f"{costs['weights']:,}", Value(1e3 * costs["step"]),
            ratio(full, costs, "step", printed), Value(1e3 * costs["answer"]),
            ratio(full, costs, "answer"), Value(costs["step_peak"], digits=0),
            Value(costs["answer_peak"], digits=0),
        ])  # fmt: skip
    return Table(
        f"{n_labels:,} labels: a step (forward, backward, update) and the best 5 labels of a "
        "batch; ratio: full over head. Memory beyond what was held before",
        ["head", "parameters", "of these, weights", "step, ms", "step, ratio",
         "best 5, ms", "best 5, ratio", "step's peak, MB", "best 5's peak, MB"],
        rows,
    )  # fmt: skip


def _threads(n_labels: int, steps: int) -> Iterator[Block]:
    counts = sorted({1, os.cpu_count() or 1})
    rows: list[list[Cell]] = []
    for name in NAMES:
        found = [in_own_process(name, n_labels, steps, count) for count in counts]
        times = [None if costs is None else Value(1e3 * costs["step"]) for costs in found]
        rows.append([name, *times, ratio(found[0], found[-1], "step")])
    columns = ["head", *(f"{count} threads" if count > 1 else "1 thread" for count in counts)]
    yield Table("A training step, in ms", [*columns, "times as fast"], rows)


def ratio(full: Costs, costs: Costs, key: str, paper: float | None = None) -> Value | None:
    """How many times as much a full layer takes."""
    if full is None or costs is None:
        return None
    return Value(full[key] / costs[key], paper=paper, digits=1)


def _figures(found: Grid, sizes: Sequence[int]) -> Iterator[Block]:
    places = [f"{n_labels:,}" for n_labels in sizes]
    for key, what, unit, scale in (
        ("step", "Time of a training step", "ms", 1e3),
        ("answer", "Time of the best 5 labels", "ms", 1e3),
        ("step_peak", "Peak of memory in training", "MB", 1.0),
    ):
        curves = {
            name: [_scaled(found[name, n_labels], key, scale) for n_labels in sizes]
            for name in NAMES
        }
        yield lines(
            f"{what} (lower is better)", places, curves, x_label="labels", y_label=unit,
            logarithmic=True,
        )  # fmt: skip


def _scaled(costs: Costs, key: str, scale: float) -> float | None:
    return None if costs is None else max(scale * costs[key], 1e-3)  # a logarithm has no 0
