"""Where the words of a text stand in it, as it was before it was normalised."""

from typing import NamedTuple
from unicodedata import category, normalize

import numpy as np

from umpteen.text.reading import EMPTY, Table, read

_HANGUL_ENDS = range(0x1160, 0x1200)  # vowels and finals, which join the syllable before them
_LONGEST = 1000  # characters that are normalised together: accents without end would take minutes


class PlacedWord(NamedTuple):
    """A word as the vectorizer reads it, and where it begins and ends in the text."""

    start: int
    end: int
    word: str


def placed_words(text: str, stop_words: Table = EMPTY) -> list[PlacedWord]:
    """Return the words of a text in order, with their places in the text as it was given.

    >>> placed_words("The ﬁsh")  # the ligature is one character
    [PlacedWord(start=0, end=3, word='the'), PlacedWord(start=4, end=7, word='fish')]
    """
    pieces = _pieces(text)
    normal = "".join(piece for _, _, piece in pieces)
    origin = [(start, end) for start, end, piece in pieces for _ in piece]
    encoded = np.frombuffer(normal.encode("utf-8", "surrogatepass"), np.uint8)
    _, spans, *_ = read((encoded, np.array([len(encoded)])), stop_words)
    n_before = np.append(0, np.cumsum((encoded & 0xC0) != 0x80))  # characters before each byte
    return [
        PlacedWord(origin[start][0], origin[end - 1][1], normal[start:end].lower())
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
    return [(start, end, normalize("NFKC", text[start:end])) for start, end in pairs]


def _joins(letter: str) -> bool:
    """Return whether a character may be normalised together with the one before it."""
    return category(letter)[0] == "M" or ord(letter) in _HANGUL_ENDS
