"""Which characters make up words, in any language."""

from collections import defaultdict
from functools import cache
from unicodedata import category

import numpy as np
import numpy.typing as npt

from umpteen.kernels.tokens import ALONE, KIND_SHIFT, LETTER, MARK, SEPARATOR

# Unicode has assigned characters here; the rest is private, or yet to come.
_ASSIGNED = (range(0x33480), range(0xE0000, 0xE0200))

# Scripts that are written without spaces.
_WITHOUT_SPACES = (
    range(0x0E00, 0x0F00),  # Thai, Lao
    range(0x1000, 0x10A0), range(0xA9E0, 0xAA00), range(0xAA60, 0xAA80),  # Myanmar
    range(0x1780, 0x1800),  # Khmer
    range(0x1950, 0x19E0), range(0x1A20, 0x1AB0), range(0xAA80, 0xAAE0),  # Tai
    range(0x3041, 0x30A0), range(0x1B001, 0x1B120), range(0x1B132, 0x1B153),  # Hiragana
    range(0x3005, 0x3007), range(0x3400, 0xA000), range(0xF900, 0xFB00),  # Han
    range(0x20000, 0x33480),  # Han
)  # fmt: skip

_JOINERS = [0x200C, 0x200D]  # invisible, inside words of Persian and of Indian scripts

_OTHER, _ALPHABETIC, _NUMERIC, _MARK = range(4)
_CATEGORIES = defaultdict(
    lambda: _OTHER,
    dict.fromkeys(("Ll", "Lm", "Lo", "Lt", "Lu"), _ALPHABETIC)
    | dict.fromkeys(("Nd", "Nl", "No"), _NUMERIC)
    | dict.fromkeys(("Mc", "Me", "Mn"), _MARK),
)


@cache
def letters() -> npt.NDArray[np.uint32]:
    """Return kind and lower case of every code point, as `kernels.tokens` reads them.

    >>> hex(letters()[ord("A")]), hex(letters()[ord("!")])
    ('0x2000061', '0x21')
    """
    lower, categories = np.zeros(0x110000, np.uint32), np.zeros(0x110000, np.uint8)
    for codes in _ASSIGNED:
        part = slice(codes.start, codes.stop)
        characters = _lower("".join(map(chr, codes)))
        lower[part] = np.frombuffer(characters.encode("utf-32-le", "surrogatepass"), "<u4")
        numbers = map(_CATEGORIES.__getitem__, map(category, characters))
        categories[part] = np.fromiter(numbers, np.uint8, len(codes))
    kinds = np.array([SEPARATOR, LETTER, LETTER, MARK], np.uint32)[categories]
    for codes in _WITHOUT_SPACES:
        part = slice(codes.start, codes.stop)
        kinds[part][categories[part] == _ALPHABETIC] = ALONE
    kinds[ord("_")] = LETTER
    kinds[_JOINERS] = MARK
    return kinds << np.uint32(KIND_SHIFT) | lower


def _lower(characters: str) -> str:
    # Without the two whose lower case is not one letter by itself: `ngrams.utf8` sees to them.
    return characters.replace("İ", "i").replace("Σ", "ς").lower()
