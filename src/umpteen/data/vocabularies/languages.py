"""Names in several languages, of which one is chosen."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from umpteen.data.label_vocabulary import Concept
from umpteen.errors import ParameterError

Tagged: TypeAlias = tuple[str, str]  # a language tag in lower case, or "", and a text

_UNTAGGED, _OTHER = 3, 4
_SHOWN = 10


@dataclass
class Multilingual:
    """A concept with its names and texts in all languages."""

    uri: str
    names: list[Tagged] = field(default_factory=list)
    alternatives: list[Tagged] = field(default_factory=list)
    texts: list[Tagged] = field(default_factory=list)
    broader: list[str] = field(default_factory=list)
    notation: str = ""


def in_language(concepts: Iterable[Multilingual], language: str | None, file: str) -> list[Concept]:
    """Return the concepts in one language; those without any name are left out.

    With None it is the language of most preferred names. A language such as "pt" also finds
    "pt-BR", and "pt-BR" finds "pt". A concept without a name in the language has one of another,
    that of most names first; other names and texts are in the language, or in none.
    """
    concepts = [concept for concept in concepts if concept.names]
    counts = Counter(tag for concept in concepts for tag in {tag for tag, _ in concept.names})
    by_count = sorted(counts, key=lambda tag: (-counts[tag], tag))
    rank = _ranking(language, by_count)
    if counts and language is not None and min(map(rank, counts)) == _OTHER:
        shown = ", ".join(f"{tag} ({counts[tag]:,} names)" for tag in by_count[:_SHOWN])
        raise ParameterError(f"language={language!r} is not in {file}, which has {shown}")
    order = {tag: (rank(tag), place) for place, tag in enumerate(by_count)}
    return [_chosen(concept, rank, order) for concept in concepts]


def clean(text: str) -> str:
    """Return a name without line breaks or spaces around it."""
    return " ".join(text.split())


def tag_of(language: str) -> str:
    """Return a language tag as it is compared.

    >>> tag_of("pt_BR")
    'pt-br'
    """
    return language.strip().lower().replace("_", "-")


def _ranking(language: str | None, by_count: list[str]) -> Callable[[str], int]:
    wanted = tag_of(language) if language is not None else next(iter(by_count), "")

    def rank(tag: str) -> int:
        if tag == wanted:
            return 0
        if not tag:
            return _UNTAGGED
        if wanted and tag.startswith(f"{wanted}-"):
            return 1
        return 2 if wanted.startswith(f"{tag}-") else _OTHER

    return rank


def _chosen(
    concept: Multilingual, rank: Callable[[str], int], order: dict[str, tuple[int, int]]
) -> Concept:
    (_, name), *others = sorted(concept.names, key=lambda tagged: order[tagged[0]])
    same = [text for tag, text in (*others, *concept.alternatives) if rank(tag) < _OTHER]
    alternatives = [text for text in dict.fromkeys(same) if text != name]
    texts = [text for tag, text in concept.texts if rank(tag) < _OTHER]
    return Concept(
        label=concept.uri,
        name=name,
        alternatives=tuple(alternatives),
        text=" ".join(dict.fromkeys(texts)),
        broader=tuple(dict.fromkeys(concept.broader)),
        uri=concept.uri,
        notation=concept.notation,
    )
