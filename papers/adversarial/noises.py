"""Which noise is the default, and why: frequency and tree on sparse and on dense features."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from papers.adversarial.hierarchical import hierarchical
from papers.adversarial.methods import measure, warm_up
from papers.adversarial.tasks import MADE_UP, Samples, Task, as_matrix, available, task
from papers.contents import Block, Cell, Section, Table, over_seeds
from umpteen.softmax import AdversarialSoftmax

_N_COMPONENTS = 128
_NOISES: dict[str, dict[str, Any]] = {
    "frequency": {"noise": "frequency"},
    "tree, 30 % by frequency": {"noise": "tree"},
    "tree, 70 % by frequency": {"noise": "tree", "recipe__frequency_share": 0.7},
}


def sections(quick: bool) -> list[Section]:
    """One for all data sets."""
    return [
        Section(
            "Which noise is the default",
            "classes that a tree draws teach more than those that are drawn by frequency.",
            "AdversarialSoftmax() with each noise on one core, trained until its validation split "
            "stops it, on the validation samples of Figure 1. Dense features are the texts' "
            f"{_N_COMPONENTS} components of a truncated SVD, and made-up ones of 20,000 classes.",
            partial(_measure, quick),
        )
    ]


def _measure(quick: bool) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for title, chosen in _tasks(quick):
        warm_up(chosen.dense)
        for noise, setting in _NOISES.items():
            runs = [_run(chosen, setting, seed, quick) for seed in range(1 if quick else 2)]
            accuracy, likelihood, seconds = np.transpose(runs)
            rows.append([
                f"{title}, {noise}", over_seeds(accuracy), over_seeds(likelihood, digits=3),
                over_seeds(seconds, digits=1),
            ])  # fmt: skip
    columns = ["data, noise", "accuracy, %", "log-likelihood", "seconds of CPU"]
    yield Table("On validation", columns, rows)


def _run(
    chosen: Task, setting: dict[str, Any], seed: int, quick: bool
) -> tuple[float, float, float]:
    model = AdversarialSoftmax(n_jobs=1, random_state=seed, verbose=False).set_params(**setting)
    began = time.process_time()
    model.set_params(epochs=1 if quick else 30).fit(chosen.X, chosen.Y)
    seconds = time.process_time() - began
    return (*measure(model, chosen.validation), seconds)


def _tasks(quick: bool) -> Iterator[tuple[str, Task]]:
    for name in available(quick):
        if name != MADE_UP:
            texts = task(name, quick)
            yield f"{name}, sparse", texts
            yield f"{name}, dense", dense(texts)
    n_classes = 500 if quick else 20_000
    train, others = hierarchical(n_classes, 128, 3 * n_classes, 4_000)
    validation = Samples(others.X[:2_000], others.y[:2_000])
    Y = as_matrix(train.y, n_classes)
    yield "made-up, dense", Task(MADE_UP, train.X, Y, validation, validation)


def dense(texts: Task) -> Task:
    """The same samples with the components of a truncated SVD as features."""
    components = TruncatedSVD(_N_COMPONENTS, random_state=0).fit(texts.X)

    def reduced(X: Any) -> Any:
        return normalize(components.transform(X)).astype(np.float32)

    validation = Samples(reduced(texts.validation.X), texts.validation.y)
    return Task(texts.name, reduced(texts.X), texts.Y, validation, validation)
