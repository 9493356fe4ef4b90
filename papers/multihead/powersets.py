"""Label sets: heads that choose subsets, compared with a threshold for all labels."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.multihead.settings import Training, training_of
from papers.multihead.tasks import LEFT_OUT, Task, texts_task
from papers.progress import progress_bar
from papers.sets import available
from umpteen.metrics import micro_f1, sample_f1, subset_accuracy
from umpteen.multihead import PowersetHead
from umpteen.neural import Blueprint, FullHead, blueprint

_SETS = ("bibtex", "cooking", "debian-tags")
_MEASURES = {"subset accuracy": subset_accuracy, "micro-F1": micro_f1, "F1 of a sample": sample_f1}
_THRESHOLDS = np.linspace(0.05, 0.6, 23)
_MOST = 20  # labels of a sample that a threshold is asked about


def sections(quick: bool) -> list[Section]:
    """A section for each data set."""
    names = available(_SETS[-1:] if quick else _SETS) or ["pydocs"]
    return [
        Section(
            f"Label sets, powersets and thresholds: {name}",
            "heads that choose subsets of labels are as good as asking for each label (Table 1).",
            f"{name}; TF-IDF of single words (or its features, where there are no texts), a Bag; "
            f"{training_of(name, quick).in_words()}; seeds: "
            f"{_n_seeds(quick)}. {LEFT_OUT} Thresholds on probabilities of a full layer with "
            "binary cross-entropy: 0.5, or the best of 23 for the same measure on a tenth of the "
            "training samples, which a network of its own does not learn from.",
            partial(_compare, name, quick),
        )
        for name in names
    ]


def _n_seeds(quick: bool) -> int:
    return 1 if quick else 3


def heads() -> dict[str, Blueprint]:
    """Subsets of neighbouring labels."""
    return {
        f"powerset, {size} labels per head": blueprint(PowersetHead, labels_per_head=size)
        for size in (4, 8)
    }


def _compare(name: str, quick: bool) -> Iterator[Block]:
    task, training, n_seeds = (
        texts_task(name, quick), training_of(name, quick), _n_seeds(quick)
    )  # fmt: skip
    yield task.in_words() + "."
    found: dict[str, list[list[float]]] = {}
    with progress_bar(name, n_seeds) as advance:
        for seed in range(n_seeds):
            for method, row in _measured(task, training, seed).items():
                found.setdefault(method, []).append(row)
            advance()
    rows: list[list[Cell]] = [
        [method, *(over_seeds(np.array(runs)[:, i]) for i in range(len(_MEASURES)))]
        for method, runs in found.items()
    ]
    yield Table("On the test part, in %", ["head", *_MEASURES], rows)


def _measured(task: Task, training: Training, seed: int) -> dict[str, list[float]]:
    """Every measure of every method, in %."""
    top = training.network(blueprint(FullHead), seed).fit(task.X, task.Y).predict_topk(
        task.X_test, k=_MOST
    )  # fmt: skip
    thresholds = chosen_thresholds(task, training, seed)
    found = {
        "full, threshold 0.5": [
            100 * score(task.Y_test, above(top, 0.5, task.Y_test)) for score in _MEASURES.values()
        ],
        "full, chosen threshold": [
            100 * score(task.Y_test, above(top, thresholds[measure], task.Y_test))
            for measure, score in _MEASURES.items()
        ],
    }
    for method, head in heads().items():
        sets = training.network(head, seed).fit(task.X, task.Y).predict(task.X_test)
        found[method] = [100 * score(task.Y_test, sets) for score in _MEASURES.values()]
    return found


def chosen_thresholds(task: Task, training: Training, seed: int) -> dict[str, float]:
    """Return the best threshold for each measure on samples that the network did not see."""
    rows = np.random.default_rng(seed).permutation(task.X.shape[0])
    seen, others = np.sort(rows[len(rows) // 10 :]), np.sort(rows[: len(rows) // 10])
    model = training.network(blueprint(FullHead), seed).fit(task.X[seen], task.Y[seen])
    top, Y = model.predict_topk(task.X[others], k=_MOST), task.Y[others]
    return {
        measure: float(max(_THRESHOLDS, key=lambda each: score(Y, above(top, each, Y))))
        for measure, score in _MEASURES.items()
    }


def above(top: Any, threshold: float, like: csr_matrix) -> csr_matrix:
    """Return the labels whose probability is a threshold or more, an indicator.

    >>> from umpteen import TopK
    >>> top = TopK(np.array([[2, 0], [1, -1]]), np.log([[0.9, 0.4], [0.3, 1e-9]]))
    >>> above(top, 0.35, csr_matrix((2, 3))).toarray()
    array([[1., 0., 1.],
           [0., 0., 0.]], dtype=float32)
    """
    kept = (np.exp(top.scores) >= threshold) & (top.labels >= 0)
    rows = np.repeat(np.arange(len(kept)), kept.sum(axis=1))
    ones: npt.NDArray[np.float32] = np.ones(len(rows), np.float32)
    return csr_matrix((ones, (rows, top.labels[kept])), shape=like.shape)
