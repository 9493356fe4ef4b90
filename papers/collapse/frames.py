"""Beyond the paper: far more labels than features, where no simplex exists."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from papers.collapse.stacks import Floats
from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.multihead.settings import Training
from papers.multihead.tasks import DEPTHS, Task, texts_task
from papers.progress import progress_bar
from papers.sets import available
from umpteen.collapse import EtfHead, coherence, fixed_frame, welch_bound
from umpteen.metrics import precision_at_k, propensity, psp_at_k
from umpteen.neural import Blueprint, FullHead, blueprint

_SETS = ("eurlex57k", "debian-tags")
_RATES = (1e-3, 3e-3, 1e-2)


def sections(quick: bool) -> list[Section]:
    """One section, if there are texts."""
    there = available(_SETS[1:] if quick else _SETS)
    if not there:
        return []
    epochs, dim = (2, 64) if quick else (12, 256)
    training = Training(epochs, batch_size=256, dim=dim)
    seeds = 1 if quick else 2
    return [
        Section(
            f"Beyond the paper: a fixed frame for many labels, {there[0]}",
            "left open there: labels far beyond the features (d << K).",
            f"{there[0]}; TF-IDF of single words, a Bag; "
            f"{training.in_words()}, but each layer has the rate of {_RATES} that is best; seeds: "
            f"{seeds}. The fixed rows are unit vectors of near-equal "
            "angles, the bias is learned. PAL is the pick-all-labels loss.",
            partial(_compare, there[0], quick, training, seeds),
        )
    ]


def _heads() -> dict[str, Blueprint]:
    return {
        "learned, yes or no": blueprint(FullHead, loss="bce"),
        "learned, PAL": blueprint(EtfHead, learned=True, normalize=True),
        "fixed frame, PAL": blueprint(EtfHead, normalize=True),
    }


def _compare(name: str, quick: bool, training: Training, n_seeds: int) -> Iterator[Block]:
    task = texts_task(name, quick)
    yield task.in_words() + "."
    rows: list[list[Cell]] = []
    learnt: dict[str, int] = {}
    with progress_bar(name, len(_heads())) as advance:
        for label, head in _heads().items():
            rate = _best_rate(task, training, head)
            runs = [_run(task, training, head, rate, seed) for seed in range(n_seeds)]
            *quality, seconds = np.array(runs).T
            rows.append(
                [label, f"{rate:g}", *map(over_seeds, quality), over_seeds(seconds, digits=0)]
            )
            learnt[label] = head.build(training.dim, task.n_labels).n_parameters
            advance()
    columns = [
        "last layer",
        "rate",
        *(f"P@{k}" for k in DEPTHS),
        *(f"PSP@{k}" for k in DEPTHS),
        "seconds",
    ]
    yield Table("On the test part, in %", columns, rows)
    yield _sizes(learnt, task.n_labels, training.dim)
    frame = fixed_frame(task.n_labels, training.dim)
    yield (
        f"The largest cosine of two rows of the frame is {coherence(frame):.3f}; none of "
        f"{task.n_labels:,} vectors in {training.dim} dimensions can be below "
        f"{welch_bound(task.n_labels, training.dim):.3f}."
    )


def _best_rate(task: Task, training: Training, head: Blueprint) -> float:
    """By precision on the validation split."""
    found = {}
    for rate in _RATES:
        model = training.network(head, seed=0, learning_rate=rate).fit(task.X, task.Y)
        found[rate] = max(model.history_["score"])
    return max(found, key=lambda rate: found[rate])


def _run(task: Task, training: Training, head: Blueprint, rate: float, seed: int) -> Floats:
    """Its quality and the seconds that training took."""
    start = time.perf_counter()
    model = training.network(head, seed, learning_rate=rate).fit(task.X, task.Y)
    seconds = time.perf_counter() - start
    return np.append(_scores(task, model), seconds)


def _scores(task: Task, model: Any) -> Floats:
    """Precision and its propensity-scored version at 1, 3 and 5, in %."""
    top = model.predict_topk(task.X_test, k=max(DEPTHS))
    precision = precision_at_k(task.Y_test, top, DEPTHS)
    scored = psp_at_k(task.Y_test, top, DEPTHS, propensity(task.Y))
    return 100 * np.concatenate([np.asarray(precision), np.asarray(scored)])


def _sizes(learnt: dict[str, int], n_labels: int, dim: int) -> Table:
    """Parameters of the last layer; memory with AdamW: weight, gradient and two averages."""
    rows: list[list[Cell]] = []
    for name, size in learnt.items():
        fixed = n_labels * dim if size < n_labels * dim else 0
        rows.append([name, f"{size:,}", f"{4 * (4 * size + fixed) / 1e6:.1f}"])
    columns = ["last layer", "learned parameters", "MB in training"]
    return Table(
        "The last layer alone, in float32: learned numbers have a gradient and two averages of "
        "AdamW beside them, fixed ones have not", columns, rows,
    )  # fmt: skip
