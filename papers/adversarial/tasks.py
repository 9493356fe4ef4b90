"""Data with one class per sample, in three splits: training, validation, test."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from papers.adversarial.hierarchical import hierarchical
from papers.sets import rarest_label, texts_of
from umpteen import data
from umpteen.text import Vectorizer

MADE_UP = "made-up"
TEXT_SETS = ("wordnet-ancestors", "debian-deps", "pydocs")
_FEWEST = 3  # training samples of a label that is taken for a class
_MOST_VALIDATION = 2_000  # samples

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples that are not trained on."""

    X: Any
    y: IntArray

    def first(self, n: int) -> "Samples":
        """At most `n` of them."""
        return Samples(self.X[:n], self.y[:n])


@dataclass(frozen=True, eq=False)
class Task:
    """Every class has a sample to learn from; `Y` has a one for each sample's class."""

    name: str
    X: Any
    Y: csr_matrix
    validation: Samples
    test: Samples

    @property
    def n_classes(self) -> int:
        return int(self.Y.shape[1])

    @property
    def dense(self) -> bool:
        return isinstance(self.X, np.ndarray)

    def in_words(self) -> str:
        """Return its size in words."""
        n, d = self.X.shape
        return (
            f"{self.name}: {n:,} training samples, {self.n_classes:,} classes, {d:,} "
            f"{'dense' if self.dense else 'sparse'} features; "
            f"{len(self.validation.y):,} validation and {len(self.test.y):,} test samples"
        )


def available(quick: bool) -> list[str]:
    """The text sets that can be loaded, of which one is enough if `quick`, and the made-up one."""
    there = data.names()
    texts = [name for name in TEXT_SETS if name in there]
    return [*(texts[-1:] if quick else texts), MADE_UP]


@cache
def task(name: str, quick: bool) -> Task:
    """Return a task by name; `quick` takes 6,000 samples of texts, and 5,000 made-up classes."""
    return _made_up(quick) if name == MADE_UP else _of_texts(name, quick)


def _made_up(quick: bool) -> Task:
    n_classes, n_features, n_train = (5_000, 64, 12_500) if quick else (200_000, 512, 500_000)
    train, others = hierarchical(n_classes, n_features, n_train, 6_000)
    both = Samples(others.X, others.y)
    rest = Samples(others.X[_MOST_VALIDATION:], others.y[_MOST_VALIDATION:])
    return Task(MADE_UP, train.X, as_matrix(train.y, n_classes), both.first(_MOST_VALIDATION), rest)


def _of_texts(name: str, quick: bool) -> Task:
    dataset = data.load(name)
    random = np.random.default_rng(0)
    train = _some(dataset.train, 6_000 if quick else None, random)
    counts = np.bincount(train.Y.indices, minlength=train.Y.shape[1])
    validation = dataset.dev
    if validation is None:
        order = random.permutation(len(train))
        n_validation = min(_MOST_VALIDATION, len(train) // 10)
        validation = train.take(np.sort(order[:n_validation]))
        train = train.take(np.sort(order[n_validation:]))
    labelled, classes = _labelled(train, counts)
    names, own = np.unique(classes, return_inverse=True)
    words = Vectorizer(ngrams=1, min_df=2)
    X = words.fit_transform(texts_of(labelled))
    others = [
        _samples(part, counts, names, words.transform)
        for part in (validation, dataset.test or validation)
    ]
    return Task(name, X, as_matrix(own, len(names)), *others)


def _some(part: Any, most: int | None, random: np.random.Generator) -> Any:
    if most is None or len(part) <= most:
        return part
    return part.take(np.sort(random.permutation(len(part))[:most]))


def _samples(
    part: Any, counts: IntArray, names: IntArray, features: Callable[[list[str]], Any]
) -> Samples:
    """Return samples in random order, without those whose class has none to learn from."""
    labelled, classes = _labelled(part, counts)
    rows = np.random.default_rng(1).permutation(np.flatnonzero(np.isin(classes, names)))
    return Samples(features(texts_of(labelled.take(rows))), np.searchsorted(names, classes[rows]))


def _labelled(part: Any, counts: IntArray) -> tuple[Any, IntArray]:
    """The samples that have a class, and their classes."""
    chosen = rarest_label(part.Y, counts)
    rows = np.flatnonzero(chosen >= 0)
    return part.take(rows), chosen[rows]


def as_matrix(y: IntArray, n_classes: int) -> csr_matrix:
    """A one for each row's class."""
    ones, starts = np.ones(len(y), np.float32), np.arange(len(y) + 1)
    return csr_matrix((ones, y.astype(np.int32), starts.astype(np.int32)), (len(y), n_classes))
