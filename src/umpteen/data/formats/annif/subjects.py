"""Subjects: what Annif calls labels. It has their URIs in files, and sometimes only their names."""

import re
import warnings
from collections.abc import Iterator
from typing import Any

from umpteen.data.label_vocabulary import LabelVocabulary
from umpteen.errors import DataFormatError

_SPACE = re.compile(r"\s")


def bare(uri: str) -> str:
    """Return a URI without the angle brackets that it may have.

    >>> bare("<http://example.org/1>"), bare("http://example.org/1")
    ('http://example.org/1', 'http://example.org/1')
    """
    return uri[1:-1] if uri.startswith("<") and uri.endswith(">") else uri


def subjects_of_lines(lines: list[str]) -> Iterator[tuple[str, str]]:
    r"""Yield the URI and the name in each line of a .tsv or .key file; one of them may be empty.

    >>> list(subjects_of_lines(["<http://example.org/1>\tdogs\tn1", "cats", ""]))
    [('http://example.org/1', 'dogs'), ('', 'cats')]
    """
    for line in lines:
        uri = name = ""
        for cell in filter(None, map(str.strip, line.split("\t"))):
            if not (cell.startswith("<") and cell.endswith(">")):
                name = cell
                break
            uri = bare(cell)
        if uri or name:
            yield uri, name


class SubjectReader:
    """Turns subjects into labels: those of a vocabulary, or else their URIs or names."""

    def __init__(self, vocabulary: LabelVocabulary | None) -> None:
        self._vocabulary = vocabulary
        self._by_uri: dict[str, str] = {}
        self._by_name: dict[str, str] = {}
        self._unknown: dict[str, int] = {}
        for label, uri, name in _entries(vocabulary):
            self._by_uri.update({uri: label, label: label})
            if name:
                self._by_name.setdefault(name, label)

    def labels(self, subjects: Iterator[tuple[str, str]]) -> list[str]:
        """Return the labels of subjects, each once; what the vocabulary lacks is left out."""
        found = dict.fromkeys(self._label(uri, name) for uri, name in subjects)
        return [label for label in found if label]

    def warn(self, file: str) -> None:
        """Warn about subjects that are not in the vocabulary; call it after the last one."""
        if self._unknown:
            example = max(self._unknown, key=lambda one: self._unknown[one])
            warnings.warn(
                f"{file}: {len(self._unknown):,} subjects are not in the vocabulary and were left "
                f"out, such as {example!r:.80} ({self._unknown[example]:,} times)",
                stacklevel=4,
            )

    def _label(self, uri: str, name: str) -> str | None:
        if self._vocabulary is None:
            return uri or name
        label = self._by_uri.get(uri) if uri else self._by_name.get(name)
        if label is None:
            asked = uri or name
            self._unknown[asked] = self._unknown.get(asked, 0) + 1
        return label


class SubjectWriter:
    """Turns labels into subjects: the URIs and names of a vocabulary, or else the labels."""

    def __init__(self, vocabulary: LabelVocabulary | None) -> None:
        self._known = {label: (uri or label, name) for label, uri, name in _entries(vocabulary)}

    def name(self, label: str) -> str:
        """Return what a label is called."""
        return self._known.get(label, (label, ""))[1] or label

    def uri(self, label: str, sample: int) -> str:
        """Return the URI of a label."""
        uri = self._known.get(label, (label, ""))[0]
        if _SPACE.search(uri) or "<" in uri or ">" in uri or not uri:
            raise DataFormatError(
                f"sample {sample} has the label {label!r:.80}, which cannot be a URI in a file of "
                "Annif: pass a vocabulary whose concepts have URIs, or write a folder with "
                "subjects='key', which has names only"
            )
        return uri


def _entries(vocabulary: Any) -> Iterator[tuple[str, str, str]]:
    """The label, the URI and the preferred name of each concept."""
    if vocabulary is not None:
        yield from zip(vocabulary.labels, vocabulary.uris, vocabulary.preferred, strict=True)
