"""Which directions the tree should see: principal components or discriminants."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Literal

import numpy as np

from papers.adversarial.methods import measure, warm_up
from papers.adversarial.noises import dense
from papers.adversarial.signal import gaussian_classes
from papers.adversarial.tasks import MADE_UP, Task, available, task
from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.progress import progress_bar
from umpteen.softmax import AdversarialSoftmax, NoiseTree

Directions = Literal["principal", "discriminant"]
_DIRECTIONS: tuple[Directions, ...] = ("principal", "discriminant")


def sections(quick: bool) -> list[Section]:
    """One for texts and one for Gaussian classes."""
    return [
        Section(
            f"Which directions the tree sees, {kind}",
            "none: the paper's trees see principal components.",
            "AdversarialSoftmax() on dense features with either directions of its tree, on one "
            "core, on validation samples. Features of texts are 128 components of a truncated SVD; "
            "Gaussian classes differ in 16 of 64 dimensions, without and with 16 others of large "
            "variance that say nothing. The likelihood of the tree is that of the same samples; "
            "its seconds are in those of fit.",
            partial(_measure, kind, quick),
        )
        for kind in _KINDS
    ]


def _measure(kind: str, quick: bool) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    warm_up(True)
    for name, chosen in _KINDS[kind](quick):
        seeds = range(1 if quick else 3)
        with progress_bar(name, len(_DIRECTIONS) * len(seeds)) as advance:
            for directions in _DIRECTIONS:
                runs = []
                for seed in seeds:
                    runs.append(_run(chosen, directions, seed, quick))
                    advance()
                digits = (3, 1, 1, 3, 1)
                cells = [
                    over_seeds(each, digits=n)
                    for each, n in zip(np.transpose(runs), digits, strict=True)
                ]
                rows.append([f"{name}, {directions}", *cells])
    columns = ["data, directions", "the tree: log-likelihood", "seconds of CPU", "accuracy, %",
               "log-likelihood", "seconds of CPU"]  # fmt: skip
    yield Table("On validation", columns, rows)


def _run(chosen: Task, directions: Directions, seed: int, quick: bool) -> tuple[float, ...]:
    tree = NoiseTree(directions=directions, random_state=seed, n_jobs=1, verbose=False)
    began = time.process_time()
    tree.fit(chosen.X, chosen.Y)
    of_tree = time.process_time() - began
    alone = float(tree.log_prob(chosen.validation.X, chosen.validation.y).mean())
    model = AdversarialSoftmax(
        noise=tree, random_state=seed, epochs=1 if quick else 30, n_jobs=1, verbose=False
    )
    began = time.process_time()
    model.fit(chosen.X, chosen.Y)
    seconds = time.process_time() - began
    return alone, of_tree, *measure(model, chosen.validation), seconds


def _texts(quick: bool) -> Iterator[tuple[str, Task]]:
    for name in available(quick):
        if name not in (MADE_UP, *(() if quick else ("pydocs",))):
            yield f"{name}, dense", dense(task(name, quick))


def _gaussian(quick: bool) -> Iterator[tuple[str, Task]]:
    n_classes = 300 if quick else 3_000
    yield "16 of 64 dimensions", gaussian_classes(n_classes, 16, 0)
    yield "16 and 16 of nuisance", gaussian_classes(n_classes, 16, 16)


_KINDS = {"texts": _texts, "Gaussian classes": _gaussian}
