"""Find out how training data writes the labels of a vocabulary."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Protocol

from umpteen.errors import LabelsError

_LEAST = 0.02  # of the labels, or of the concepts if these are fewer; below, matches are chance
_SHOWN = 3


class Described(Protocol):
    """What labels are matched with."""

    @property
    def label(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uri(self) -> str: ...
    @property
    def notation(self) -> str: ...


@dataclass(frozen=True)
class Spelling:
    """A kind of labels: how a concept is written, and what counts as the same."""

    kind: str
    write: Callable[[Described], str]
    fold: Callable[[str], str] = str

    def index(self, concepts: Sequence[Described]) -> dict[str, int]:
        """Return the concept of each label; the first, where several are written alike."""
        written = [(self.fold(self.write(concept)), i) for i, concept in enumerate(concepts)]
        return {label: i for label, i in reversed(written) if label}


def last_part(uri: str) -> str:
    """Return what follows the last separator of a URI.

    >>> last_part("http://example.org/onto#c7"), last_part("urn:isbn:7"), last_part("plain")
    ('c7', '7', '')
    """
    separators = "/#" if re.search("[/#]", uri) else ":"
    pieces = re.split(f"[{separators}]", uri.rstrip(separators))
    return pieces[-1] if len(pieces) > 1 else ""


SPELLINGS = (
    Spelling("label", lambda concept: concept.label),
    Spelling("URI", lambda concept: concept.uri),
    Spelling("URI", lambda concept: f"<{concept.uri}>" if concept.uri else ""),
    Spelling("notation", lambda concept: concept.notation),
    Spelling("last part of the URI", lambda concept: last_part(concept.uri)),
    Spelling("name", lambda concept: concept.name),
    Spelling("name", lambda concept: concept.name, str.casefold),
)


def match_labels(labels: list[str], concepts: Sequence[Described]) -> list[str]:
    """Return a label for each concept, as `labels` are written, each only once."""
    if not labels:
        return [concept.label for concept in concepts]
    best, index, n_found = SPELLINGS[0], {}, -1
    for spelling in SPELLINGS:
        candidates = spelling.index(concepts)
        n_matches = sum(spelling.fold(label) in candidates for label in labels)
        if n_matches > n_found:
            best, index, n_found = spelling, candidates, n_matches
    if n_found < max(1, _LEAST * min(len(labels), len(concepts))):
        raise _no_match(labels, concepts, n_found)
    return _written(labels, concepts, best, index)


def _written(
    labels: list[str], concepts: Sequence[Described], spelling: Spelling, index: dict[str, int]
) -> list[str]:
    plain = [spelling.write(concept) for concept in concepts]
    found: dict[int, str] = {}
    for label in labels:
        i = index.get(spelling.fold(label))
        if i is not None and (i not in found or plain[i] == label):
            found[i] = label
    used = set(found.values())
    written = []
    for i, concept in enumerate(concepts):
        free = chain((plain[i], concept.label), (f"{concept.label} ({n})" for n in count(2)))
        label = found.get(i) or next(each for each in free if each and each not in used)
        used.add(label)
        written.append(label)
    return written


def _no_match(labels: list[str], concepts: Sequence[Described], n_found: int) -> LabelsError:
    kinds = {
        spelling.kind: [w for w in map(spelling.write, concepts[:1000]) if w][:_SHOWN]
        for spelling in reversed(SPELLINGS)
    }
    examples = "; ".join(
        f"{kind}: {_shown(each)}" for kind, each in reversed(kinds.items()) if each
    )
    return LabelsError(
        f"{n_found:,} of {len(labels):,} labels match the vocabulary. Labels look like "
        f"{_shown(labels[:_SHOWN])}; the vocabulary has {len(concepts):,} concepts, which look "
        f"like this: {examples or 'nothing'}. Read the vocabulary that the labels come from, in "
        "their language (language=)"
    )


def _shown(labels: list[str]) -> str:
    return ", ".join(f"{example!r:.60}" for example in labels)
