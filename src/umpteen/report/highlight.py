"""A text in which the words that support an answer, or count against it, are marked."""

from collections.abc import Sequence

from umpteen.markup import Html, join, tag
from umpteen.text.placing import FeaturePlaces, placed_words

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
    placed = placed_words(text)
    contributions = _contributions([one.word for one in placed], words)
    strongest = max(map(abs, contributions), default=0.0)
    pieces: list[str] = []
    end = 0
    for one, contribution in zip(placed, contributions, strict=True):
        if abs(contribution) > _FAINTEST * strongest and one.start >= end:
            pieces.append(text[end : one.start])
            kind = _kind(contribution / strongest)
            pieces.append(tag("mark", text[one.start : one.end], class_=kind))
            end = one.end
    return join(*pieces, text[end:])


def _contributions(tokens: list[str], words: Sequence[tuple[str, float]]) -> list[float]:
    """What each token adds up to; a phrase is shared out among its words."""
    total = [0.0] * len(tokens)
    long = [i for i, token in enumerate(tokens) if len(token) > 1]
    every, without_short = FeaturePlaces(tokens), FeaturePlaces([tokens[i] for i in long])
    for name, contribution in words:
        word = name.lower()
        # other vectorizers drop single letters before they pair words
        found = every.of(word) or [[long[i] for i in places] for places in without_short.of(word)]
        for places in found:
            for i in places:
                total[i] += contribution / len(places)
    return total


def _kind(strength: float) -> str:
    level = 1 + (abs(strength) > 1 / 3) + (abs(strength) > 2 / 3)
    return f"{'for' if strength > 0 else 'against'}{level}"
