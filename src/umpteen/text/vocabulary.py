"""The vocabulary: n-grams that became features, in alphabetical order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt

from umpteen import parallel
from umpteen.kernels.hashing import index, places
from umpteen.kernels.ngrams import N_PARTITIONS, add_counts
from umpteen.kernels.tokens import NEW_LINE
from umpteen.storage import Shape, Sizes, Within, storable
from umpteen.text.reading import Table, table, table_faults

Counts = tuple[Any, Any]  # of a block of texts, as `kernels.ngrams.count_texts` gives them
Spelled = tuple[Any, Any]  # hashes of words, and a line of UTF-8 for each
_Array = npt.NDArray[Any]


def _from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    state["ngrams"] = state.pop("runs")


@storable(version=2, upgrades={1: _from_1})
@dataclass(eq=False)
class Vocabulary:
    """Feature i is made of the words `ngrams[i]`, -1 for no more words; `table` finds its hash."""

    table: Table
    ngrams: Annotated[npt.NDArray[np.int32], Shape("used", "longest"), Within(-1, "words")]
    words: Annotated[list[str], Shape("words")]

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: a table that does not find its keys."""
        if len(self.table[1]) != len(self.ngrams):
            yield f"has {len(self.table[1])} hashes for {len(self.ngrams)} features"
        yield from table_faults(self.table)

    @classmethod
    def learn(
        cls,
        counts: Sequence[Counts],
        spelled: Sequence[Spelled],
        longest: int,
        least: tuple[int, int],
        most: int | None,
        n_jobs: int | None,
    ) -> tuple[Self, npt.NDArray[np.int32]]:
        """Return the n-grams in at `least` so many texts, and in how many texts each is.

        `spelled` has the words, and other features that are not made of several words.
        Of more than `most`, those in the most texts are kept; of equals, the first by name.
        """
        keys, n_texts, left, right = _added(counts, least, n_jobs)
        words, ngrams = _spelled(keys, left, right, _words(keys[left == 0], spelled), longest)
        order = np.lexsort(ngrams.T[::-1])  # of words, so of names: a space is before any letter
        if most is not None:
            order = order[np.sort(np.argsort(-n_texts[order], kind="stable")[:most])]
        return cls(table(keys[order]), ngrams[order], words), n_texts[order]

    def extended(self, words: Sequence[str], keys: npt.NDArray[np.uint64]) -> "Vocabulary":
        """Return the same with single words after the features that are there."""
        ngrams = np.full((len(words), self.ngrams.shape[1]), -1, np.int32)
        ngrams[:, 0] = len(self.words) + np.arange(len(words))
        return Vocabulary(
            table(np.append(self.table[1], keys)),
            np.concatenate([self.ngrams, ngrams]),
            [*self.words, *words],
        )

    @property
    def is_multiword(self) -> npt.NDArray[np.bool_]:
        """Which features are more than one word."""
        return np.asarray((self.ngrams >= 0).sum(axis=1) > 1)

    def names(self) -> list[str]:
        """Return the words of each feature."""
        words = np.array([*self.words, ""], object)  # the last one for -1
        return [" ".join(filter(None, ngram)) for ngram in words[self.ngrams].tolist()]


def gathered(
    found: Iterable[tuple[Counts, Spelled]], *, together: bool
) -> tuple[list[Counts], list[Spelled]]:
    """Return the counts and words of blocks as they come.

    If `together`, counts are added up whenever there are more than twice as many as different ones:
    those of many files would not fit into memory otherwise.
    """
    counts: list[Counts] = []
    spelled: list[Spelled] = []
    n_counts = n_different = 0
    for each, words in found:
        counts.append(each)
        spelled.append(words)
        n_counts += len(each[0][0])
        if together and n_counts > 2 * n_different:
            counts, spelled = [counts_together(counts)], [spelled_together(spelled)]
            n_counts = n_different = len(counts[0][0][0])
    return counts, spelled


def counts_together(counts: Sequence[Counts]) -> Counts:
    """Return the counts of several blocks as if they were one."""
    if len(counts) == 1:
        return counts[0]
    pieces = [_partition(counts, i, (1, 1)) for i in range(N_PARTITIONS)]
    starts = np.cumsum([0, *(len(keys) for keys, *_ in pieces)])
    return tuple(map(np.concatenate, zip(*pieces, strict=True))), starts


def spelled_together(spelled: Sequence[Spelled]) -> Spelled:
    """Return the words of several blocks, each once."""
    if len(spelled) == 1:
        return spelled[0]
    hashes, lines = map(np.concatenate, zip(*spelled, strict=True))
    _, firsts = np.unique(hashes, return_index=True)
    is_first = np.zeros(len(hashes), bool)
    is_first[firsts] = True
    ends = np.flatnonzero(lines == NEW_LINE)
    return hashes[is_first], lines[np.repeat(is_first, np.diff(ends, prepend=-1))]


def _added(
    counts: Sequence[Counts], least: tuple[int, int], n_jobs: int | None
) -> tuple[_Array, ...]:
    """Hash, number of texts, left and right half of each n-gram with enough texts."""
    pieces = parallel.run(
        lambda i: _partition(counts, i, least), range(N_PARTITIONS), n_jobs=n_jobs
    )
    return tuple(map(np.concatenate, zip(*pieces, strict=True)))


def _partition(counts: Sequence[Counts], i: int, least: tuple[int, int]) -> tuple[_Array, ...]:
    pieces = [[column[at[i] : at[i + 1]] for column in ngrams] for ngrams, at in counts]
    columns = map(np.concatenate, zip(*pieces, strict=True))
    return add_counts(*columns, *least)  # type: ignore[no-any-return]


def _words(keys: _Array, spelled: Sequence[Spelled]) -> list[str]:
    """The words that have these hashes."""
    every, lines = map(np.concatenate, zip(*spelled, strict=True))
    stops = np.flatnonzero(lines == NEW_LINE)
    starts = np.append(0, stops + 1)
    wanted, text = places(keys, index(every), every), lines.tobytes()
    spans = zip(starts[wanted].tolist(), stops[wanted].tolist(), strict=True)
    return [text[start:stop].decode().lower() for start, stop in spans]


def _spelled(
    keys: _Array, left: _Array, right: _Array, words: list[str], longest: int
) -> tuple[list[str], npt.NDArray[np.int32]]:
    """The words in order, and each n-gram as numbers of words."""
    is_word = left == 0
    order = sorted(range(len(words)), key=words.__getitem__)
    word = np.full(len(keys), -1, np.int32)
    word[np.flatnonzero(is_word)[order]] = np.arange(len(words))
    slots = index(keys)
    shorter, last = places(left, slots, keys), word[places(right, slots, keys)]
    ngrams = np.full((len(keys), longest), -1, np.int32)
    ngrams[:, 0] = word
    spelled = is_word
    for length in range(
        1, longest
    ):  # an n-gram occurs in no more texts than its words: all are here
        spelled = ~is_word & spelled[shorter]
        ngrams[spelled, :length] = ngrams[shorter[spelled], :length]
        ngrams[spelled, length] = last[spelled]
    return [words[i] for i in order], ngrams
