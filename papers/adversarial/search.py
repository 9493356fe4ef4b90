"""Beyond the paper: answers among the tree's candidates instead of all classes."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from papers.adversarial.figure1 import budget, tuned
from papers.adversarial.runs import run, warm_up
from papers.adversarial.tasks import MADE_UP, available, task
from papers.contents import Cell, Part, Section, Table, Value
from umpteen.base import TopK

_WIDTHS = (4, 16, 64, 256, 1024)
_REPEATS = 3


def sections(quick: bool) -> list[Section]:
    """On the made-up data, which have most classes, and on wordnet."""
    return [
        Section(
            f"Answers in sublinear time, on {name}",
            "a sample's answer compares all classes; the paper leaves it at that.",
            "umpteen's setting of Figure 1, trained as long. A beam goes through the tree, and "
            "the classes where it ends are compared by their scores. Milliseconds are per sample, "
            f"answered in one call, the median of {_REPEATS}.",
            partial(_measure, name, quick),
        )
        for name in available()
        if name in (MADE_UP, "wordnet-ancestors")
    ]


def _measure(name: str, quick: bool) -> Iterator[Part]:
    chosen, spent = task(name, quick), budget(name, quick)
    warm_up(chosen)
    found = run(chosen, tuned(name, quick, "umpteen").best, spent.final)
    judges = chosen.test.first(200 if quick else 1_000)
    answers = found.answers()
    exact, milliseconds = _timed(partial(answers.exact, judges.X, 1), len(judges.y))
    best = exact.labels[:, 0]
    rows: list[list[Cell]] = [_row("all classes", best, best, judges.y, milliseconds)]
    for width in _WIDTHS:
        if 2 * width >= chosen.n_classes:
            break
        by_beam, milliseconds = _timed(
            partial(answers.among_candidates, judges.X, 1, width), len(judges.y)
        )
        row = _row(f"beam of {width}", by_beam.labels[:, 0], best, judges.y, milliseconds)
        rows.append(row)
    yield f"{chosen.n_classes:,} classes, {len(judges.y):,} samples of test."
    columns = ["search", "accuracy, %", "same answer as exact, %", "ms per sample"]
    yield Table("Exact and by beam", columns, rows)


def _row(name: str, labels: Any, best: Any, y: Any, milliseconds: float) -> list[Cell]:
    return [
        name, Value(100 * float((labels == y).mean())),
        Value(100 * float((labels == best).mean())), Value(milliseconds, digits=3),
    ]  # fmt: skip


def _timed(answer: Callable[[], TopK], n_rows: int) -> tuple[TopK, float]:
    """The answers, and the median of milliseconds per row."""
    answer()  # compiles
    seconds = []
    for _ in range(_REPEATS):
        began = time.perf_counter()
        found = answer()
        seconds.append(time.perf_counter() - began)
    return found, 1e3 * float(np.median(seconds)) / n_rows
