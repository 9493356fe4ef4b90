"""Texts that stay in their files: tasks read them where they run, a few at a time."""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt

from umpteen import parallel
from umpteen.validation import check_texts

Rows = npt.NDArray[np.int64]


class TextSource(Protocol):
    """A file of texts, or another place that any machine can read them from."""

    def batches(self) -> Iterator[list[str]]:
        """Yield all texts in order, a few at a time."""
        ...


class TextShards(Sequence[str]):
    """The texts of several sources in order, which are read there whenever they are needed.

    `n_characters` has the length of each text, source by source. Single texts and slices are read
    by tasks; iteration reads all sources here, one after the other.

    >>> class Two:
    ...     def batches(self):
    ...         yield ["one", "two"]
    >>> texts = TextShards([Two(), Two()], [np.array([3, 3])] * 2)
    >>> len(texts), texts[2], texts[1::2]
    (4, 'one', ['two', 'two'])
    """

    def __init__(
        self, sources: Sequence[TextSource], n_characters: Sequence[npt.NDArray[np.integer]]
    ) -> None:
        self.sources = list(sources)
        self.n_characters = np.concatenate([np.zeros(0, np.int64), *n_characters])
        self._first = np.cumsum([0, *map(len, n_characters)])
        self._latest: tuple[slice | None, list[str]] = None, []  # a slice that was asked for

    def __len__(self) -> int:
        return len(self.n_characters)

    def __iter__(self) -> Iterator[str]:
        return (text for source in self.sources for batch in source.batches() for text in batch)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if not isinstance(row, slice):
            return self.take(np.array([range(len(self))[row]]))[0]
        latest = self._latest  # of one moment: another thread may ask for another slice
        if latest[0] != row:
            latest = self._latest = row, self.take(np.arange(len(self))[row])
        return list(latest[1])

    def take(self, rows: Rows) -> list[str]:
        """Return some texts, in the order of `rows`."""
        wanted, places = np.unique(rows, return_inverse=True)
        pieces = np.split(wanted, np.searchsorted(wanted, self._first[1:-1]))
        tasks = [
            (source, piece - first)
            for source, piece, first in zip(self.sources, pieces, self._first, strict=False)
            if len(piece)
        ]
        found = [text for texts in parallel.map(_picked, tasks) for text in texts]
        return [found[place] for place in places.tolist()]


Texts = list[str] | TextShards


def check_text_source(texts: Any) -> Texts:
    """Return shards unchanged, and other texts as a list that was checked."""
    return texts if isinstance(texts, TextShards) else check_texts(texts)


def texts_at(texts: Texts, rows: npt.NDArray[Any]) -> list[str]:
    """Return some of the texts.

    >>> texts_at(["a", "b", "c"], np.array([2, 0]))
    ['c', 'a']
    """
    return texts.take(rows) if isinstance(texts, TextShards) else [texts[row] for row in rows]


def lengths_of(texts: Texts) -> npt.NDArray[np.integer]:
    """Return the number of characters of each text."""
    if isinstance(texts, TextShards):
        return texts.n_characters
    return np.fromiter(map(len, texts), np.int64, len(texts))


def _picked(task: tuple[TextSource, Rows]) -> list[str]:
    """Return the texts of one source at some ascending places."""
    source, places = task
    found: list[str] = []
    first = 0
    batches = source.batches()
    while len(found) < len(places):
        batch = next(batches)
        here = places[len(found) :]
        here = here[here < first + len(batch)]
        found += [batch[place - first] for place in here.tolist()]
        first += len(batch)
    return found


def batches_of(source: list[str] | TextSource) -> Iterator[list[str]]:
    """Yield the texts of a task in batches: a list is one batch, a source at least one."""
    if isinstance(source, list):
        yield source
        return
    batches = source.batches()
    yield next(batches, [])
    yield from batches
