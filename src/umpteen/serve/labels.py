"""Type-ahead over the names of all labels, also of a million."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Self
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from umpteen.kernels.infix import find_infix
from umpteen.tagger import Tagger

_AT_ONCE = 10_000  # names that are folded without letting other threads run
_END = "\n"
_PADDING = 4096  # bytes after the last name
_LONGEST = 200  # characters of a query that count
_FEWEST_INFIX = 2  # bytes of a query that is looked for inside of names
_MARKS = re.compile(r"[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u064b-\u065f]+")
_SPACES = re.compile(r"  +|[\t\r\v\f]+")
_PLAIN = {"æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "\u0131": "i", "ħ": "h"}

IntArray = npt.NDArray[np.int64]


class Found(NamedTuple):
    """The numbers of the best labels, and how many labels match in all."""

    labels: list[int]
    n_matches: int


class LabelSearch:
    """Finds labels by any part of their names, whatever its case and accents.

    First come labels whose name begins with the query, then those of which a word begins with it,
    then those that have it anywhere; in each group the most frequent first. A label is found by all
    names that the vocabulary has for it. Every query looks at every byte, without an index: a
    million names take 5 to 15 ms, and the memory of the folded names and 16 bytes for each.

    >>> tagger = Tagger().fit(["a", "b", "c"], [["Crème brûlée"], ["ice cream"], ["bread"]])
    >>> [tagger.labels[i] for i in LabelSearch.of(tagger).find("CRE", 5).labels]
    ['Crème brûlée', 'ice cream']
    """

    def __init__(
        self, text: npt.NDArray[np.uint8], starts: IntArray, labels: IntArray, counts: IntArray
    ) -> None:
        self._text, self._starts, self._labels, self._counts = text, starts, labels, counts

    @classmethod
    def of(cls, tagger: Tagger) -> Self:
        """Return a search over the labels of a tagger."""
        names, labels = _names(tagger)
        folded = b"".join(
            fold(_END.join(part) + _END).encode("utf-8", "replace") for part in _chunks(names)
        )
        text = np.frombuffer(folded + bytes(_PADDING), np.uint8)
        ends = np.flatnonzero(text[: len(folded)] == ord(_END)) + 1
        return cls(text, np.append(0, ends), labels, np.asarray(tagger.label_counts_))

    @property
    def n_bytes(self) -> int:
        """The memory that the search takes."""
        return self._text.nbytes + self._starts.nbytes + self._labels.nbytes

    def find(self, query: str, limit: int) -> Found:
        """Return the best `limit` labels for a query; the most frequent ones for an empty query.

        A query of one letter finds names that begin with it.
        """
        folded = fold(query[:_LONGEST].replace(_END, " ")).strip().encode("utf-8", "replace")
        entries, where = self._entries(np.frombuffer(folded, np.uint8))
        labels = self._labels[entries]
        matching = np.zeros(len(self._counts), bool)
        matching[labels] = True
        best = labels[self._best(labels, where, limit)]
        found = list(dict.fromkeys(best.tolist()))[:limit]
        return Found(found, int(np.count_nonzero(matching)))

    def _entries(self, needle: npt.NDArray[np.uint8]) -> tuple[Any, npt.NDArray[np.uint8]]:
        """Names that match, and where: at the beginning (0), of a word (1), elsewhere (2)."""
        if len(needle) >= _FEWEST_INFIX:
            return find_infix(self._text, self._starts, needle)  # type: ignore[no-any-return]
        found = np.arange(len(self._labels))
        if len(needle):
            found = np.flatnonzero(self._text[self._starts[:-1]] == needle[0])
        return found, np.zeros(len(found), np.uint8)

    def _best(self, labels: IntArray, where: npt.NDArray[np.uint8], limit: int) -> IntArray:
        """The places of the best entries; of names of one label, all may be among them."""
        rank = where * (np.int64(1) << 40) - self._counts[labels]
        most = 8 * limit
        chosen = np.arange(len(rank))
        if len(rank) > most:
            chosen = np.sort(np.argpartition(rank, most)[:most])
        return chosen[np.argsort(rank[chosen], kind="stable")]


def fold(text: str) -> str:
    """Return a text without the differences that people do not type.

    >>> fold("Łódź ÆRØ  Straße")
    'lodz aero strasse'
    """
    if text.isascii():
        folded = text.lower()
    else:
        folded = _MARKS.sub("", normalize("NFKD", text.casefold()))
        for letter, plain in _PLAIN.items():
            folded = folded.replace(letter, plain)
    return _SPACES.sub(" ", folded)


def _names(tagger: Tagger) -> tuple[list[str], IntArray]:
    """Every name of every label, and the label of each."""
    names, labels = [], []
    vocabulary = tagger.vocabulary_
    for label, number in tagger.label_names_.ids.items():
        concept = None if vocabulary is None else vocabulary.get(label)
        for name in (label, *(concept.names if concept else ())):
            names.append(name.replace(_END, " "))
            labels.append(number)
    return names, np.array(labels, np.int64)


def _chunks(names: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _AT_ONCE):
        yield names[start : start + _AT_ONCE]
