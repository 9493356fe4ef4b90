"""Explanations of labels, with positions in the text."""

from collections import defaultdict
from typing import Any

from umpteen.serve.snapshot import Snapshot
from umpteen.tagger.explanation import TagExplanation
from umpteen.text.placing import PlacedWord, placed_words
from umpteen.text.reading import EMPTY

_NAMED = 0.999  # of a label's text, that a text which names it has
_BETWEEN = " | "  # names of a feature that several n-grams share


def explain(snapshot: Snapshot, text: str, label: str | None) -> dict[str, Any]:
    """Return what each word of the text adds to the label's score, and other contributions."""
    tagger = snapshot.tagger
    found = tagger.explain(text, label)
    placed = placed_words(text, getattr(tagger.vectorizer_, "stop_table_", EMPTY))
    words, other = share_out(found, placed)
    return {
        "model": snapshot.name,
        "version": snapshot.version,
        "label": found.label,
        "name": snapshot.name_of(found.label),
        "probability": round(found.probability, 6),
        "exact": found.exact,
        "words": words,
        "other": other,
        "named": found.text_covered > _NAMED,
        "path": [vars(step) for step in found.path],
        "nearest": [vars(near) for near in found.neighbours],
    }


def share_out(
    found: TagExplanation, placed: list[PlacedWord]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the contribution of each word in order, and those that have no position.

    The contribution of a feature is split equally among its positions, and among the words of an
    n-gram, so that all contributions together add up to the margin of the label.
    """
    shares, totals = [0.0] * len(placed), defaultdict[str, float](float)
    other = [{"what": "bias", "contribution": found.bias}] if found.exact else []
    places = _Places([one.word for one in placed])
    for name, contribution in found.words:
        matches = places.of(name)
        if not matches:
            other.append({"what": name, "contribution": contribution})
        for place, share in matches.items():
            shares[place] += contribution * share
            totals[placed[place].word] += contribution * share
    words = [
        {**one._asdict(), "contribution": round(share, 6), "total": round(totals[one.word], 6)}
        for one, share in zip(placed, shares, strict=True)
        if share
    ]
    return words, other


class _Places:
    """Where n-grams stand in a sequence of words."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._at = defaultdict[str, list[int]](list)
        for place, word in enumerate(words):
            self._at[word].append(place)

    def of(self, name: str) -> dict[int, float]:
        """Return the words that a feature is made of and the share of each; they sum to 1."""
        found = [place for one in name.split(_BETWEEN) for place in self._places(one)]
        shares = defaultdict[int, float](float)
        for places in found:
            for place in places:
                shares[place] += 1 / (len(found) * len(places))
        return dict(shares)

    def _places(self, name: str) -> list[range]:
        if name.startswith("*") and name.endswith("*"):  # characters of a word
            piece = name.strip("*")
            return [
                range(place, place + 1)
                for word, places in self._at.items() if piece in f"_{word}_" for place in places
            ]  # fmt: skip
        first, *rest = name.removesuffix("*").split(" ")
        n_words = 1 + len(rest)
        return [
            range(place, place + n_words)
            for place in self._at.get(first, ())
            if self._words[place + 1 : place + n_words] == rest
        ]
