"""Data sets, networks with one head or another, and how good their answers are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from papers.progress import progress_bar
from papers.sets import rarest_label, some_rows, texts_of, train_and_test
from umpteen.metrics import precision_at_k
from umpteen.text import Vectorizer

DEPTHS = (1, 3, 5)
LEAST_SAMPLES = 3  # of a class
LEFT_OUT = (
    "Labels without a training sample are left out, and test samples that have no other: no head "
    "could find them."
)
_MOST_DOCUMENTS = {"eurlex57k": 15_000}  # the size of the paper's EurLex-4K
_FEW_DOCUMENTS = {"pydocs": 10_000}  # of fewer, hardly any share a label

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Task:
    """Samples to learn from and to test on; labels as an indicator, or one class per sample."""

    name: str
    X: Any
    Y: Any
    X_test: Any
    Y_test: Any

    @property
    def n_labels(self) -> int:
        return int(self.Y.max()) + 1 if self.Y.ndim == 1 else int(self.Y.shape[1])

    def in_words(self) -> str:
        """Its size in words."""
        what = "classes" if self.Y.ndim == 1 else "labels"
        return (
            f"{self.name}: {self.X.shape[0]:,} samples to learn from, {self.X_test.shape[0]:,} to "
            f"test on, {self.n_labels:,} {what}"
        )


@cache
def texts_task(name: str, quick: bool) -> Task:
    """A data set with several labels per sample, as TF-IDF of single words.

    bibtex has no texts; its features are words already.

    Labels without a training sample are left out, and test samples that then have none. `quick`
    takes 2,000 samples, or a few more.
    """
    train, test = train_and_test(name)
    most = _FEW_DOCUMENTS.get(name, 2_000) if quick else _MOST_DOCUMENTS.get(name)
    rows = some_rows(len(train), most)
    test_rows = np.arange(min(len(test), 1_000) if quick else len(test))
    Y = csr_matrix(train.Y[rows])
    seen = np.flatnonzero(Y.getnnz(axis=0))
    Y_test = csr_matrix(test.Y[test_rows][:, seen])
    test_rows = test_rows[Y_test.getnnz(axis=1) > 0]
    X, X_test = _words(train.take(rows), test.take(test_rows))
    return Task(name, X, Y[:, seen], X_test, csr_matrix(test.Y[test_rows][:, seen]))


def _words(train: Any, test: Any) -> tuple[csr_matrix, csr_matrix]:
    if train.texts is None:
        return csr_matrix(train.X), csr_matrix(test.X)
    words = Vectorizer(ngrams=1, min_df=2)
    return words.fit_transform(texts_of(train)), words.transform(texts_of(test))


@cache
def classes_task(name: str, quick: bool) -> Task:
    """The same with one class per sample: its rarest label with at least 3 training samples.

    Test samples whose class no training sample has are left out.
    """
    task = texts_task(name, quick)
    counts = task.Y.getnnz(axis=0)
    chosen, chosen_test = (rarest_label(Y, counts, LEAST_SAMPLES) for Y in (task.Y, task.Y_test))
    seen = np.unique(chosen[chosen >= 0])
    rows = np.flatnonzero(chosen >= 0)
    test_rows = np.flatnonzero(np.isin(chosen_test, seen))
    return Task(
        name,
        task.X[rows],
        np.searchsorted(seen, chosen[rows]),
        task.X_test[test_rows],
        np.searchsorted(seen, chosen_test[test_rows]),
    )


def scores(task: Task, model: Any) -> Floats:
    """Test accuracy `(1,)` for classes, otherwise precision at 1, 3 and 5; in %."""
    if task.Y.ndim == 1:
        answers = model.predict_topk(task.X_test, k=1).labels[:, 0]
        return np.array([100 * np.mean(answers == task.Y_test)])
    top = model.predict_topk(task.X_test, k=max(DEPTHS))
    return 100 * np.asarray(precision_at_k(task.Y_test, top, DEPTHS), np.float64)


def repeated(
    task: Task, models: Mapping[str, Callable[[int], Any]], n_seeds: int
) -> dict[str, Floats]:
    """The scores of each model, made for a seed and then trained: `(seeds, depths)`."""
    found: dict[str, list[Floats]] = {name: [] for name in models}
    with progress_bar(task.name, n_seeds * len(models)) as advance:
        for seed in range(n_seeds):
            for name, make in models.items():
                found[name].append(scores(task, make(seed).fit(task.X, task.Y)))
                advance()
    return {name: np.stack(runs) for name, runs in found.items()}
