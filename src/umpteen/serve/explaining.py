"""Explanations of labels, with positions in the text."""

from collections import defaultdict
from typing import Any

from umpteen.serve.snapshot import Snapshot
from umpteen.tagger.explanation import TagExplanation
from umpteen.text.placing import FeaturePlaces, PlacedWord, placed_words
from umpteen.text.reading import EMPTY

_NAMED = 0.999  # of a label's text, that a text which names it has


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
    places = FeaturePlaces([one.word for one in placed])
    for name, contribution in found.words:
        matches = _shares(places.of(name))
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


def _shares(occurrences: list[list[int]]) -> dict[int, float]:
    """The share of each word in a feature; they sum to 1."""
    shares = defaultdict[int, float](float)
    for places in occurrences:
        for place in places:
            shares[place] += 1 / (len(occurrences) * len(places))
    return dict(shares)
