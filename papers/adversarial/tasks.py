"""Data with one class per sample, in three parts: to learn from, to choose by, to test on."""

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
from umpteen.data.dataset import Part
from umpteen.text import Vectorizer
from umpteen.validation import Features

MADE_UP = "made-up"
TEXT_SETS = ("wordnet-ancestors", "debian-deps", "pydocs")
_FEWEST = 3  # training samples of a label that is taken for a class
_MOST_JUDGED = 2_000  # samples to choose by

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Judges:
    """Samples that are not learned from."""

    X: Any
    y: IntArray

    def first(self, n: int) -> "Judges":
        """At most `n` of them."""
        return Judges(self.X[:n], self.y[:n])


@dataclass(frozen=True, eq=False)
class Task:
    """Every class has a sample to learn from; `Y` has a one for each sample's class."""

    name: str
    X: Features
    Y: csr_matrix
    validation: Judges
    test: Judges

    @property
    def n_classes(self) -> int:
        return int(self.Y.shape[1])

    @property
    def dense(self) -> bool:
        return isinstance(self.X, np.ndarray)

    def said(self) -> str:
        """Its size in words."""
        n, d = self.X.shape
        return (
            f"{self.name}: {n:,} samples to learn from, {self.n_classes:,} classes, {d:,} "
            f"{'dense' if self.dense else 'sparse'} features; {len(self.validation.y):,} samples "
            f"to choose by and {len(self.test.y):,} to test on"
        )


def available() -> list[str]:
    """The text sets that can be loaded, and the made-up one."""
    there = data.names()
    return [*(name for name in TEXT_SETS if name in there), MADE_UP]


@cache
def task(name: str, quick: bool) -> Task:
    """By name; `quick` takes 6,000 samples of texts, and 5,000 made-up classes."""
    return _made_up(quick) if name == MADE_UP else _of_texts(name, quick)


def _made_up(quick: bool) -> Task:
    n_classes, n_features, n_train = (5_000, 64, 12_500) if quick else (200_000, 512, 500_000)
    train, others = hierarchical(n_classes, n_features, n_train, 6_000)
    judges = Judges(others.X, others.y)
    rest = Judges(others.X[_MOST_JUDGED:], others.y[_MOST_JUDGED:])
    return Task(MADE_UP, train.X, as_matrix(train.y, n_classes), judges.first(_MOST_JUDGED), rest)


def _of_texts(name: str, quick: bool) -> Task:
    parts = data.load(name)
    random = np.random.default_rng(0)
    train = _some(parts.train, 6_000 if quick else None, random)
    counts = np.bincount(train.Y.indices, minlength=train.Y.shape[1])
    held_out = parts.dev
    if held_out is None:
        order = random.permutation(len(train))
        n_judged = min(_MOST_JUDGED, len(train) // 10)
        held_out = train.take(np.sort(order[:n_judged]))
        train = train.take(np.sort(order[n_judged:]))
    known, classes = _labelled(train, counts)
    names, own = np.unique(classes, return_inverse=True)
    words = Vectorizer(ngrams=1, min_df=2)
    X = words.fit_transform(texts_of(known))
    judges = [
        _judges(part, counts, names, words.transform) for part in (held_out, parts.test or held_out)
    ]
    return Task(name, X, as_matrix(own, len(names)), *judges)


def _some(part: Part, most: int | None, random: np.random.Generator) -> Part:
    if most is None or len(part) <= most:
        return part
    return part.take(np.sort(random.permutation(len(part))[:most]))


def _judges(
    part: Part, counts: IntArray, names: IntArray, features: Callable[[list[str]], Any]
) -> Judges:
    """In random order; without samples of a class that has none to learn from."""
    known, classes = _labelled(part, counts)
    rows = np.random.default_rng(1).permutation(np.flatnonzero(np.isin(classes, names)))
    return Judges(features(texts_of(known.take(rows))), np.searchsorted(names, classes[rows]))


def _labelled(part: Part, counts: IntArray) -> tuple[Part, IntArray]:
    """The samples that have a class, and their classes."""
    chosen = rarest_label(part.Y, counts)
    rows = np.flatnonzero(chosen >= 0)
    return part.take(rows), chosen[rows]


def as_matrix(y: IntArray, n_classes: int) -> csr_matrix:
    """A one for each row's class."""
    ones, starts = np.ones(len(y), np.float32), np.arange(len(y) + 1)
    return csr_matrix((ones, y.astype(np.int32), starts.astype(np.int32)), (len(y), n_classes))
