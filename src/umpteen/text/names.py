"""Names of labels as words."""

import re
from functools import cache

import numpy as np

from umpteen.kernels.tokens import ALONE, KIND_SHIFT, MARK
from umpteen.text.letters import letters

_LETTER = r"[^\W\d_]"
_SMALL = r"[a-z\u00df-\u00f6\u00f8-\u00ff]"
_CAPITAL = r"[A-Z\u00c0-\u00d6\u00d8-\u00de]"


def words_of_name(name: str) -> str:
    """Return the words of a name, which may be written in camel case or with dots and the like.

    >>> words_of_name("sklearn.preprocessing.LabelBinarizer"), words_of_name("uses::HTMLParser2")
    ('sklearn preprocessing Label Binarizer', 'uses HTML Parser 2')
    """
    return " ".join(filter(None, _borders().split(name)))


def has_words(name: str) -> bool:
    """Return whether any word of a name may mean something; codes have single letters and digits.

    >>> has_words("b tree"), has_words("犬"), has_words("c 7")
    (True, True, False)
    """
    return _word().search(name) is not None


@cache
def _borders() -> re.Pattern[str]:
    marks = _characters(MARK)
    return re.compile(
        rf"(?:[^\w{marks}]|_)+"  # dots, hyphens, spaces; marks belong to the letter before them
        rf"|(?:(?<={_LETTER})|(?<=[{marks}]))(?=\d)|(?<=\d)(?={_LETTER})"  # letters and digits
        rf"|(?:(?<={_SMALL})|(?<={_SMALL}[{marks}]))(?={_CAPITAL})"  # camelCase
        r"|(?<=[A-Z])(?=[A-Z][a-z])"  # HTMLParser
    )


@cache
def _word() -> re.Pattern[str]:
    """A letter and another or a mark, or a letter of a script in which each is a word."""
    return re.compile(rf"{_LETTER}(?:{_LETTER}|[{_characters(MARK)}])|[{_characters(ALONE)}]")


def _characters(kind: int) -> str:
    """The characters of one kind, as ranges of a regular expression."""
    codes = np.flatnonzero(letters() >> np.uint32(KIND_SHIFT) == kind)
    runs = np.split(codes, np.flatnonzero(np.diff(codes) > 1) + 1)
    return "".join(f"\\U{run[0]:08x}-\\U{run[-1]:08x}" for run in runs)
