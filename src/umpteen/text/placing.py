"""Where words and features of a text stand in it, as it was before it was normalised."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple
from unicodedata import category, normalize

import numpy as np

from umpteen.text.morphology import sequences
from umpteen.text.reading import EMPTY, Table, read

_HANGUL_ENDS = range(0x1160, 0x1200)  # vowels and finals, which join the syllable before them
_BETWEEN = " | "  # names of a feature that several n-grams share
_LONGEST = 1000  # characters that are normalised together: accents without end would take minutes


class PlacedWord(NamedTuple):
    """A word as the vectorizer reads it, and where it begins and ends in the text."""

    start: int
    end: int
    word: str


class FeaturePlaces:
    """Where the features of a text stand in the sequence of its words.

    Features are named as `Vectorizer.named_features` names them.

    >>> places = FeaturePlaces(["a", "fly", "flies", "a", "fly"])
    >>> places.of("a fly"), places.of("fly | flies"), places.of("fly*")
    ([[0, 1], [3, 4]], [[1], [4], [2]], [[1], [4]])
    """

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)
        self._at = defaultdict[str, list[int]](list)
        for place, word in enumerate(words):
            self._at[word].append(place)

    def of(self, name: str) -> list[list[int]]:
        """Return the places of the words of each occurrence of a feature."""
        return [places for one in name.split(_BETWEEN) for places in self._of_one(one)]

    def _of_one(self, name: str) -> list[list[int]]:
        if name.startswith("*") and name.endswith("*"):  # characters of a word
            words = self._with_characters.get(name.strip("*"), ())
            return [[place] for word in words for place in self._at[word]]
        first, *rest = name.removesuffix("*").split(" ")
        n_words = 1 + len(rest)
        return [
            list(range(place, place + n_words))
            for place in self._at.get(first, ())
            if self._words[place + 1 : place + n_words] == rest
        ]

    @cached_property
    def _with_characters(self) -> dict[str, list[str]]:
        """The words that have each sequence of characters."""
        found = defaultdict[str, list[str]](list)
        for word in self._at:
            for piece in sequences(word):
                found[piece].append(word)
        return dict(found)


def placed_words(text: str, stop_words: Table = EMPTY) -> list[PlacedWord]:
    """Return the words of a text in order, with their places in the text as it was given.

    >>> placed_words("The ﬁsh")  # the ligature is one character
    [PlacedWord(start=0, end=3, word='the'), PlacedWord(start=4, end=7, word='fish')]
    """
    pieces = _pieces(text)
    normal = "".join(piece for _, _, piece in pieces).lower()  # as long: `_pieces` has seen to İ
    origin = [(start, end) for start, end, piece in pieces for _ in piece]
    encoded = np.frombuffer(normal.encode("utf-8", "surrogatepass"), np.uint8)
    _, spans, *_ = read((encoded, np.array([len(encoded)])), stop_words)
    n_before = np.append(0, np.cumsum((encoded & 0xC0) != 0x80))  # characters before each byte
    return [
        PlacedWord(origin[start][0], origin[end - 1][1], normal[start:end])
        for start, end in n_before[spans].tolist()
    ]


def _pieces(text: str) -> list[tuple[int, int, str]]:
    """Characters that are normalised together (NFKC): where they begin and end, and the result."""
    if text.isascii():
        return [(at, at + 1, letter) for at, letter in enumerate(text)]
    starts: list[int] = []
    for at, letter in enumerate(text):
        if not starts or not _joins(letter) or at - starts[-1] >= _LONGEST:
            starts.append(at)
    pairs = zip(starts, [*starts[1:], len(text)], strict=True)
    return [
        (start, end, normalize("NFKC", text[start:end]).replace("İ", "i\u0307"))
        for start, end in pairs
    ]


def _joins(letter: str) -> bool:
    """Return whether a character may be normalised together with the one before it."""
    return category(letter)[0] == "M" or ord(letter) in _HANGUL_ENDS
