"""Docstrings become samples: sentences with the objects they describe, in three parts.

A sentence under several objects is one sample with several labels; one under more than
`_MAX_LABELS` is boilerplate and left out. Summaries are for training, so that every label has a
training sample; of the other sentences one in twenty goes to dev, one in twenty to test, chosen
by a checksum of the text. Test also gets what *other* objects say of an object in their See Also,
except where those words stand in some docstring as they are: that would only test memory.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

from umpteen.data.pydocs.docstrings import Document, read_docstring
from umpteen.data.samples import Samples

_MAX_LABELS = 10


class Collection(NamedTuple):
    """The three parts, and the summary line of each label."""

    parts: dict[str, Samples]
    label_texts: dict[str, str]


@dataclass
class _Sentence:
    text: str
    labels: set[str] = field(default_factory=set)
    is_summary: bool = False


def assemble(docstrings: Mapping[str, str], aliases: Mapping[str, str]) -> Collection:
    """Return the data set of these docstrings; `aliases` are other names that See Also may use."""
    read = {name: read_docstring(docstrings[name]) for name in sorted(docstrings)}
    documents = {name: document for name, document in read.items() if document}
    described = _described(documents)
    parts = _split(described)
    known = {name for sentence in parts["train"].values() for name in sentence.labels}
    mentioned = _mentioned(documents, aliases, known)
    fresh = {key: mentioned[key] for key in mentioned if key not in described}
    return Collection(
        parts={
            "train": _samples(parts["train"]),
            "dev": _samples(parts["dev"]),
            "test": _samples(parts["test"], fresh),
        },
        label_texts={name: documents[name].summary for name in sorted(known)},
    )


def _key(text: str) -> str:
    """Equal for texts that differ only in case, spaces and punctuation."""
    return re.sub(r"[\W_]+", "", text.lower())


def _described(documents: Mapping[str, Document]) -> dict[str, _Sentence]:
    found: dict[str, _Sentence] = {}
    for name, document in documents.items():
        for text in [document.summary, *document.sentences]:
            sentence = found.setdefault(_key(text), _Sentence(text))
            sentence.labels.add(name)
            sentence.is_summary |= text is document.summary
    return _without_boilerplate(found)


def _mentioned(
    documents: Mapping[str, Document], aliases: Mapping[str, str], known: set[str]
) -> dict[str, _Sentence]:
    """What See Also sections say of known objects."""
    found: dict[str, _Sentence] = {}
    for name, document in documents.items():
        for written, text in document.see_also:
            meant = {_resolve(reference, name, aliases, known) for reference in written}
            labels = {label for label in meant if label}
            if labels:
                found.setdefault(_key(text), _Sentence(text)).labels.update(labels)
    return _without_boilerplate(found)


def _resolve(reference: str, name: str, aliases: Mapping[str, str], known: set[str]) -> str | None:
    """The object that `name` calls `reference`: looked for beside it, then further out."""
    reference = re.sub(r"^np\.", "numpy.", reference)
    parts = name.split(".")
    for depth in range(len(parts) - 1, -1, -1):
        full = ".".join([*parts[:depth], reference])
        full = aliases.get(full, full)
        if full in known and full != name:
            return full
    return None


def _without_boilerplate(sentences: dict[str, _Sentence]) -> dict[str, _Sentence]:
    return {
        key: sentence
        for key, sentence in sentences.items()
        if key and len(sentence.labels) <= _MAX_LABELS
    }


def _split(sentences: dict[str, _Sentence]) -> dict[str, dict[str, _Sentence]]:
    parts: dict[str, dict[str, _Sentence]] = {"train": {}, "dev": {}, "test": {}}
    taught: set[str] = set()
    for key, sentence in sorted(sentences.items(), key=lambda item: _part_of(*item) != "train"):
        part = _part_of(key, sentence)
        if not sentence.labels <= taught:
            part = "train"
        if part == "train":
            taught |= sentence.labels
        parts[part][key] = sentence
    return parts


def _part_of(key: str, sentence: _Sentence) -> str:
    draw = crc32(key.encode()) % 20
    return "train" if sentence.is_summary or draw > 1 else ("dev", "test")[draw]


def _samples(*groups: dict[str, _Sentence]) -> Samples:
    """The samples in an order that says nothing; ids tell sentences from See Also lines."""
    rows = [row for kind, group in enumerate(groups) for row in _rows(group, kind)]
    rows.sort()
    return Samples(
        texts=[text for _, text, _, _ in rows],
        labels=[labels for _, _, labels, _ in rows],
        ids=[f"{kind}/{i}" for i, (_, _, _, kind) in enumerate(rows)],
    )


def _rows(group: Mapping[str, _Sentence], kind: int) -> Iterator[tuple[int, str, list[str], str]]:
    name = ("sentence", "see-also")[kind]
    for key, sentence in group.items():
        yield crc32(key.encode()), sentence.text, sorted(sentence.labels), name
