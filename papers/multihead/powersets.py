"""Table 1's powersets on real label sets: subsets of a few labels against a threshold."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.multihead.settings import QUICK, Training
from papers.multihead.tasks import Task, texts_task
from papers.progress import progress_bar
from papers.sets import available, some_rows, train_and_test
from umpteen.base import TopK
from umpteen.metrics import micro_f1, sample_f1, subset_accuracy
from umpteen.multihead import PowersetHead
from umpteen.neural import FullHead, blueprint

_SETS = ("cooking", "bibtex", "debian-tags")
_TRAINING = Training(8, dim=128)
_MOST = 8_000  # samples to learn from
_K = 20  # labels that a threshold chooses from
_LIMITS = np.linspace(-3, 3, 61)  # of logits
_MEASURES = {"subset accuracy": subset_accuracy, "F1, per sample": sample_f1,
             "F1, all pairs": micro_f1}  # fmt: skip
_SIZES = (2, 4, 8)  # labels per head


def sections(quick: bool) -> list[Section]:
    """One section for all sets."""
    names, training = available(_SETS[:1] if quick else _SETS), QUICK if quick else _TRAINING
    if not names:
        return []
    n_seeds = 1 if quick else 2
    return [
        Section(
            "Table 1, powersets of real label sets",
            "heads that choose a subset of a few labels each get more whole sets right than a "
            "threshold for each label (VOC 80.13 against 79.82 %, COCO 47.16 against 46.62).",
            f"{', '.join(names)}: up to {_MOST:,} texts, TF-IDF of single words (bibtex as it "
            "comes), a Bag; "
            f"{training.said()}; seeds: {n_seeds}. Threshold: a full layer with binary "
            "cross-entropy, and the logit from which labels are taken with the most right sets on "
            "the last tenth of the training samples, which it was not trained on. Labels stand in "
            "heads by their ids.",
            partial(_compare, names, quick, training, n_seeds),
        )
    ]


def _compare(names: list[str], quick: bool, training: Training, n_seeds: int) -> Iterator[Block]:
    for name in names:
        task = _some(_task(name, quick))
        yield task.said() + "."
        found: dict[str, list[list[float]]] = {}
        with progress_bar(name, n_seeds * (1 + len(_SIZES))) as advance:
            for seed in range(n_seeds):
                found.setdefault("threshold", []).append(_thresholded(task, training, seed))
                advance()
                for size in _SIZES:
                    head = blueprint(PowersetHead, labels_per_head=size)
                    model = training.network(head, seed).fit(task.X, task.Y)
                    kind = f"powersets of {size}"
                    found.setdefault(kind, []).append(_scores(task, model.predict(task.X_test)))
                    advance()
        rows: list[list[Cell]] = [
            [kind, *(over_seeds(each) for each in np.transpose(runs))]
            for kind, runs in found.items()
        ]
        yield Table(f"{name}: on the test part, in %", ["head", *_MEASURES], rows)


def _task(name: str, quick: bool) -> Task:
    """Texts as TF-IDF; bibtex comes as features."""
    if name != "bibtex":
        return texts_task(name, quick)
    train, test = train_and_test(name)
    seen = np.flatnonzero(train.Y.getnnz(axis=0))
    return Task(
        name, train.X, csr_matrix(train.Y[:, seen]), test.X, csr_matrix(test.Y[:, seen])
    )  # fmt: skip


def _some(task: Task) -> Task:
    rows = some_rows(task.X.shape[0], _MOST)
    return Task(task.name, task.X[rows], csr_matrix(task.Y[rows]), task.X_test, task.Y_test)


def _thresholded(task: Task, training: Training, seed: int) -> list[float]:
    held = np.arange(task.X.shape[0]) % 10 == 9
    model = training.network(blueprint(FullHead, loss="bce"), seed)
    model.fit(task.X[~held], task.Y[~held])
    limit = best_limit(task.Y[held], model.predict_topk(task.X[held], k=_K))
    return _scores(task, _above(model.predict_topk(task.X_test, k=_K), limit, task.n_labels))


def best_limit(Y: Any, top: TopK) -> float:
    """The score from which labels are taken with the most sets right."""
    right = [subset_accuracy(Y, _above(top, limit, Y.shape[1])) for limit in _LIMITS]
    return float(_LIMITS[int(np.argmax(right))])


def _above(top: TopK, limit: float, n_labels: int) -> csr_matrix:
    rows, places = np.nonzero((top.scores > limit) & (top.labels >= 0))
    ones = np.ones(len(rows), np.float32)
    return csr_matrix((ones, (rows, top.labels[rows, places])), (len(top.labels), n_labels))


def _scores(task: Task, predicted: Any) -> list[float]:
    return [100 * measure(task.Y_test, predicted) for measure in _MEASURES.values()]
