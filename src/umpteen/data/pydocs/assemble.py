"""Docstrings become samples: sentences with the objects they describe, in three splits.

A sentence under several objects is one sample with several labels; one under more than
`_MAX_LABELS` is boilerplate and left out. What an object's own docstring says is for training. What
*other* objects say of it in their See Also is how somebody would ask for it: a third of these lines
is for training as well, a sixth for dev and half for test, chosen by a checksum of the text. Lines
that stand in some docstring as they are would only test memory, and are left out.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

from umpteen.data.pydocs.docstrings import Document, read_docstring
from umpteen.data.samples import Samples

_MAX_LABELS = 10
_SPLITS = ("train", "train", "dev", "test", "test", "test")  # of See Also lines


class Collection(NamedTuple):
    """The three splits, and the summary line of each label."""

    splits: dict[str, Samples]
    label_texts: dict[str, str]


@dataclass
class _Sentence:
    text: str
    labels: set[str] = field(default_factory=set)


def assemble(docstrings: Mapping[str, str], aliases: Mapping[str, str]) -> Collection:
    """Return the data set of these docstrings; `aliases` are other names that See Also may use."""
    read = {name: read_docstring(docstrings[name]) for name in sorted(docstrings)}
    documents = {name: document for name, document in read.items() if document}
    described = _described(documents)
    taught = {name for sentence in described.values() for name in sentence.labels}
    mentioned = _mentioned(documents, aliases, taught)
    splits: dict[str, dict[str, _Sentence]] = {"train": {}, "dev": {}, "test": {}}
    for key, sentence in mentioned.items():
        if key not in described:
            splits[_SPLITS[crc32(key.encode()) % len(_SPLITS)]][key] = sentence
    return Collection(
        splits={
            "train": _samples(described, splits["train"]),
            "dev": _samples({}, splits["dev"]),
            "test": _samples({}, splits["test"]),
        },
        label_texts={name: documents[name].summary for name in sorted(taught)},
    )


def _key(text: str) -> str:
    """Equal for texts that differ only in case, spaces and punctuation."""
    return re.sub(r"[\W_]+", "", text.lower())


def _described(documents: Mapping[str, Document]) -> dict[str, _Sentence]:
    found: dict[str, _Sentence] = {}
    for name, document in documents.items():
        for text in [document.summary, *document.sentences]:
            found.setdefault(_key(text), _Sentence(text)).labels.add(name)
    return _without_boilerplate(found)


def _mentioned(
    documents: Mapping[str, Document], aliases: Mapping[str, str], taught: set[str]
) -> dict[str, _Sentence]:
    """What See Also sections say of the labels of train."""
    found: dict[str, _Sentence] = {}
    for name, document in documents.items():
        for written, text in document.see_also:
            meant = {_resolve(reference, name, aliases, taught) for reference in written}
            labels = {label for label in meant if label}
            if labels:
                found.setdefault(_key(text), _Sentence(text)).labels.update(labels)
    return _without_boilerplate(found)


def _resolve(reference: str, name: str, aliases: Mapping[str, str], taught: set[str]) -> str | None:
    """The object that `name` calls `reference`: looked for next to it, then further out."""
    reference = re.sub(r"^np\.", "numpy.", reference)
    names = name.split(".")
    for depth in range(len(names) - 1, -1, -1):
        full = ".".join([*names[:depth], reference])
        full = aliases.get(full, full)
        if full in taught and full != name:
            return full
    return None


def _without_boilerplate(sentences: dict[str, _Sentence]) -> dict[str, _Sentence]:
    return {
        key: sentence
        for key, sentence in sentences.items()
        if key and len(sentence.labels) <= _MAX_LABELS
    }


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
