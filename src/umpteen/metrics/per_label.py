"""How good the answers are for each label alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from umpteen.metrics.hits import Hits, find_hits
from umpteen.metrics.inputs import FloatArray, check_pair

FEWEST_TEST_SAMPLES = 5


@dataclass(frozen=True)
class LabelQuality:
    """One label: its samples, and how well it does among the best k answers."""

    label: int | str
    n_train: int | None
    n_test: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Every label with test samples, by id: a column for each number, a row for each label.

    `precision` is the share of samples it was answered to that it is relevant to, `recall` the
    share of samples it is relevant to that it was answered to. `names` are those of the rows.
    """

    k: int
    labels: npt.NDArray[np.int64]
    n_train: npt.NDArray[np.int64] | None
    n_test: npt.NDArray[np.int64]
    precision: FloatArray
    recall: FloatArray
    f1: FloatArray
    names: list[str] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, row: int) -> LabelQuality:
        return LabelQuality(
            label=int(self.labels[row]) if self.names is None else self.names[row],
            n_train=None if self.n_train is None else int(self.n_train[row]),
            n_test=int(self.n_test[row]),
            precision=float(self.precision[row]),
            recall=float(self.recall[row]),
            f1=float(self.f1[row]),
        )

    def best(self, n: int = 10, at_least: int = FEWEST_TEST_SAMPLES) -> list[LabelQuality]:
        """Return the `n` labels with the highest F1 and at least `at_least` test samples."""
        return self._first(-self.f1, n, at_least)

    def worst(self, n: int = 10, at_least: int = FEWEST_TEST_SAMPLES) -> list[LabelQuality]:
        """Return the `n` labels with the lowest F1 and at least `at_least` test samples."""
        return self._first(self.f1, n, at_least)

    def _first(self, key: FloatArray, n: int, at_least: int) -> list[LabelQuality]:
        rows = np.flatnonzero(self.n_test >= at_least)
        order = np.lexsort((rows, -self.n_test[rows], key[rows]))  # of equals, the surer first
        return [self[row] for row in rows[order[:n]]]


def per_label(
    Y: Any, top: Any, k: int = 5, Y_train: Any = None, label_names: Sequence[str] | None = None
) -> LabelTable:
    """Return precision, recall and F1 of each label with test samples, in the best `k` answers.

    >>> from umpteen import TopK
    >>> table = per_label([[0], [1], [1]], TopK([[0], [0], [1]], [[0.9]] * 3), k=1)
    >>> table[1]
    LabelQuality(label=1, n_train=None, n_test=2, precision=1.0, recall=0.5, f1=0.6666666666666666)
    >>> [label.label for label in table.best(at_least=1)]
    [1, 0]
    """
    counts = None
    if Y_train is not None:
        Y, Y_train = check_pair(Y, Y_train, ("Y", "Y_train"))
        counts = np.bincount(Y_train.indices, minlength=Y_train.shape[1])
    return label_table(find_hits(Y, top, k), k, counts, label_names)


def label_table(
    hits: Hits, k: int, counts: Any = None, label_names: Sequence[str] | None = None
) -> LabelTable:
    """Return `per_label` of hits; `counts` are training samples per label."""
    labels = np.flatnonzero(hits.relevant_per_label)
    found, answered = hits.per_label(k)[labels], hits.answers_per_label(k)[labels]
    n_test = hits.relevant_per_label[labels]
    return LabelTable(
        k=k,
        labels=labels,
        n_train=None if counts is None else counts[labels],
        n_test=n_test,
        precision=found / np.maximum(answered, 1),
        recall=found / n_test,
        f1=2 * found / (answered + n_test),
        names=None if label_names is None else [str(label_names[i]) for i in labels.tolist()],
    )
