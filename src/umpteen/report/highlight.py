"""A text in which the words that speak for an answer, or against it, are marked."""

import re
from collections.abc import Sequence

from umpteen.markup import Html, join, tag

_WORD = re.compile(r"\w+")
_FAINTEST = 0.05  # of the strongest


def shorten(text: str, limit: int = 400) -> str:
    """Return the beginning of a text, in whole words and on one line.

    >>> shorten("one two  three", limit=9)
    'one two …'
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    return f"{cut.rpartition(' ')[0] or cut} …"


def highlight(text: str, words: Sequence[tuple[str, float]]) -> Html:
    """Return the text, its words marked by what they contribute, alone or within a phrase.

    >>> highlight("Sort a list", [("sort", 2.0), ("the", -1.0)])
    '<mark class="for3">Sort</mark> a list'
    """
    places = list(_WORD.finditer(text))
    contributions = _contributions([place.group().lower() for place in places], words)
    strongest = max(map(abs, contributions), default=0.0)
    pieces: list[str] = []
    end = 0
    for place, contribution in zip(places, contributions, strict=True):
        if abs(contribution) > _FAINTEST * strongest:
            pieces.append(text[end : place.start()])
            pieces.append(tag("mark", place.group(), class_=_kind(contribution / strongest)))
            end = place.end()
    return join(*pieces, text[end:])


def _contributions(tokens: list[str], words: Sequence[tuple[str, float]]) -> list[float]:
    """What each token adds up to; a phrase is shared out among its words."""
    total = [0.0] * len(tokens)
    for word, contribution in words:
        phrase = _WORD.findall(word.lower())
        # vectorizers drop single letters before they pair words
        short_too = any(len(piece) == 1 for piece in phrase)
        kept = [i for i, token in enumerate(tokens) if short_too or len(token) > 1]
        for start in range(len(kept) - len(phrase) + 1):
            matched = kept[start : start + len(phrase)]
            if [tokens[i] for i in matched] == phrase:
                for i in matched:
                    total[i] += contribution / len(phrase)
    return total


def _kind(strength: float) -> str:
    level = 1 + (abs(strength) > 1 / 3) + (abs(strength) > 2 / 3)
    return f"{'for' if strength > 0 else 'against'}{level}"
