"""The runs of words that became features, in alphabetical order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from umpteen import parallel
from umpteen.kernels.hashing import index, places
from umpteen.kernels.ngrams import N_PARTITIONS, add_counts
from umpteen.storage import Shape, Sizes, Within, storable
from umpteen.text.runs import Table, table, table_faults

Counts = tuple[Any, Any, Any]  # of a block of texts, as `kernels.ngrams.count_texts` gives them
_Array = npt.NDArray[Any]


@storable
@dataclass(eq=False)
class Vocabulary:
    """Feature i is made of the words `runs[i]`, -1 for no more words; `table` finds its hash."""

    table: Table
    runs: Annotated[npt.NDArray[np.int32], Shape("known", "longest"), Within(-1, "words")]
    words: Annotated[list[str], Shape("words")]

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: a table that does not find its keys."""
        if len(self.table[1]) != len(self.runs):
            yield f"has {len(self.table[1])} hashes for {len(self.runs)} features"
        yield from table_faults(self.table)

    @classmethod
    def learn(
        cls,
        counts: Sequence[Counts],
        longest: int,
        least: tuple[int, int],
        most: int | None,
        n_jobs: int | None,
    ) -> tuple[Self, npt.NDArray[np.int32]]:
        """Return the n-grams in at `least` so many texts, and in how many texts each is.

        Of more than `most`, those in the most texts are kept; of equals, the first by name.
        """
        keys, n_texts, left, right = _added(counts, least, n_jobs)
        words, runs = _spelled(keys, left, right, _words(keys[left == 0], counts), longest)
        order = np.lexsort(runs.T[::-1])  # of words, so of names: a space is before any letter
        if most is not None:
            order = order[np.sort(np.argsort(-n_texts[order], kind="stable")[:most])]
        return cls(table(keys[order]), runs[order], words), n_texts[order]

    def extended(self, words: Sequence[str], keys: npt.NDArray[np.uint64]) -> "Vocabulary":
        """Return the same with single words after the features that are there."""
        runs = np.full((len(words), self.runs.shape[1]), -1, np.int32)
        runs[:, 0] = len(self.words) + np.arange(len(words))
        return Vocabulary(
            table(np.append(self.table[1], keys)),
            np.concatenate([self.runs, runs]),
            [*self.words, *words],
        )

    @property
    def is_run(self) -> npt.NDArray[np.bool_]:
        """Which features are more than one word."""
        return np.asarray((self.runs >= 0).sum(axis=1) > 1)

    def names(self) -> list[str]:
        """Return the words of each feature."""
        words = np.array([*self.words, ""], object)  # the last one for -1
        return [" ".join(filter(None, run)) for run in words[self.runs].tolist()]


def _added(
    counts: Sequence[Counts], least: tuple[int, int], n_jobs: int | None
) -> tuple[_Array, ...]:
    """Hash, number of texts, left and right part of each run with enough texts."""

    def partition(i: int) -> tuple[_Array, ...]:
        parts = [[column[at[i] : at[i + 1]] for column in runs] for runs, at, _ in counts]
        columns = map(np.concatenate, zip(*parts, strict=True))
        return add_counts(*columns, *least)  # type: ignore[no-any-return]

    parts = parallel.run(partition, range(N_PARTITIONS), n_jobs=n_jobs)
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def _words(keys: _Array, counts: Sequence[Counts]) -> list[str]:
    """The words that have these hashes."""
    seen, letters, ends = zip(*(words for _, _, words in counts), strict=True)
    sizes = np.concatenate([np.diff(part, prepend=0) for part in ends])
    every, text = np.concatenate(seen), np.concatenate(letters).tobytes()
    wanted = places(keys, index(every), every)
    stops = np.cumsum(sizes)[wanted]
    spans = zip((stops - sizes[wanted]).tolist(), stops.tolist(), strict=True)
    return [text[start:stop].decode().lower() for start, stop in spans]


def _spelled(
    keys: _Array, left: _Array, right: _Array, words: list[str], longest: int
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """The words in order, and each run as numbers of words."""
    is_word = left == 0
    order = sorted(range(len(words)), key=words.__getitem__)
    word = np.full(len(keys), -1, np.int32)
    word[np.flatnonzero(is_word)[order]] = np.arange(len(words))
    slots = index(keys)
    shorter, last = places(left, slots, keys), word[places(right, slots, keys)]
    runs = np.full((len(keys), longest), -1, np.int32)
    runs[:, 0] = word
    spelled = is_word
    for length in range(1, longest):  # a run occurs in no more texts than its parts: all are here
        spelled = ~is_word & spelled[shorter]
        runs[spelled, :length] = runs[shorter[spelled], :length]
        runs[spelled, length] = last[spelled]
    return [words[i] for i in order], runs
