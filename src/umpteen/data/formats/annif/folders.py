"""Folders of documents as Annif has them: `a.txt` with its subjects in `a.tsv` or `a.key`."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from umpteen.data.formats.annif.files import subjects_of_object
from umpteen.data.formats.annif.subjects import SubjectReader, SubjectWriter, subjects_of_lines
from umpteen.data.formats.records import Record, batches, records_of
from umpteen.data.formats.source import Readable
from umpteen.data.label_vocabulary import LabelVocabulary
from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError, NotWritableError, ParameterError
from umpteen.limits import limit_advice, max_line_bytes
from umpteen.writing import open_to_write

_ADVICE = "expected documents such as a.txt, with their subjects in a.tsv or a.key"


def is_folder(path: Readable) -> bool:
    """Return whether a corpus is a folder."""
    return not hasattr(path, "read") and os.path.isdir(path)  # type: ignore[arg-type]


def stream_folder(
    path: Any, batch_size: int | None, vocabulary: LabelVocabulary | None = None
) -> Iterator[Samples]:
    """Return samples of the documents in a folder."""
    return batches(read_folder(Path(path), vocabulary), batch_size)


def read_folder(folder: Path, vocabulary: LabelVocabulary | None) -> Iterator[Record]:
    """Yield the documents in the order of their names, with these names as ids.

    As in Annif, texts are UTF-8 with or without a byte order mark, and bytes that are not are
    replaced. A document without a file of subjects has no labels.
    """
    subjects = SubjectReader(vocabulary)
    names = sorted(os.listdir(folder))
    documents = [name for name in names if name.endswith(".txt")]
    documents += [name for name in names if name.endswith(".json")]
    if not documents:
        raise DataFormatError(f"{folder} has no documents; {_ADVICE}")
    for name in documents:
        path = folder / name
        read = _json_document if name.endswith(".json") else _text_document
        yield read(path, subjects)
    subjects.warn(str(folder))


def write_folder(
    samples: Samples, folder: Path, vocabulary: LabelVocabulary | None, subjects: str
) -> None:
    """Write a .txt file per sample and its subjects; files of these names are replaced."""
    if subjects not in ("tsv", "key"):
        raise ParameterError(f"subjects={subjects!r} is not possible: use 'tsv' or 'key'")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise NotWritableError(f"{folder} cannot be made: {problem.strerror}") from None
    writer = SubjectWriter(vocabulary)
    width = len(str(max(len(samples) - 1, 0)))
    taken: set[str] = set()
    for i, record in enumerate(records_of(samples, "annif")):
        name = _file_name(record.id, f"{i:0{width}d}", taken)
        with open_to_write(folder / f"{name}.txt") as file:
            file.write(record.text.encode())
        if record.labels is None:
            continue
        lines = [_subject_line(label, writer, i, subjects) for label in record.labels]
        with open_to_write(folder / f"{name}.{subjects}") as file:
            file.write("".join(lines).encode())


def _subject_line(label: str, writer: SubjectWriter, i: int, kind: str) -> str:
    name = writer.name(label)
    if set(name) & set("\t\r\n"):
        raise DataFormatError(f"sample {i} has a label with a tab or a line end: {name!r:.80}")
    return f"{name}\n" if kind == "key" else f"<{writer.uri(label, i)}>\t{name}\n"


def _file_name(own_id: str | None, number: str, taken: set[str]) -> str:
    """The id, if it is a plain file name that is still free; otherwise the number."""
    plain = own_id is not None and all(c.isalnum() or c in "-_" for c in own_id) and own_id
    name = own_id if own_id is not None and plain else f"document-{number}"
    while name.casefold() in taken:  # an id may look like a number of ours, or differ in case only
        name = f"document-{number}" if name == own_id else f"{name}-{number}"
    taken.add(name.casefold())
    return name


def _text_document(path: Path, subjects: SubjectReader) -> Record:
    labels = None
    for ending in (".tsv", ".key"):
        lines = path.with_suffix(ending)
        if os.path.lexists(lines):
            labels = subjects.labels(subjects_of_lines(_content(lines).splitlines()))
            break
    return Record(_content(path), labels, _stem(path))


def _json_document(path: Path, subjects: SubjectReader) -> Record:
    try:
        item = json.loads(_content(path))
    except (ValueError, RecursionError) as problem:
        raise DataFormatError(f"{path}: not JSON ({problem!s:.100})") from None
    found = subjects_of_object(item) if isinstance(item, dict) else None
    if found is None or not isinstance(item.get("text", ""), str):
        raise DataFormatError(f'{path}: expected {{"text": "...", "subjects": [{{"uri": ...}}]}}')
    labels = subjects.labels(found) if "subjects" in item else None
    own_id = item.get("document_id")
    record = Record(item.get("text", ""), labels, _stem(path) if own_id is None else str(own_id))
    if not all(map(_is_unicode, (record.text, record.id or "", *(labels or ())))):
        raise DataFormatError(f"{path}: it has half a character (a lone surrogate)")
    return record


def _stem(path: Path) -> str:
    """The name of a document, without bytes that are not UTF-8."""
    return os.fsencode(path.stem).decode("utf-8", "replace")


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _content(path: Path) -> str:
    if not path.is_file():  # a pipe would wait for its writer
        raise DataFormatError(f"{path} is not a regular file; {_ADVICE}")
    if path.stat().st_size > max_line_bytes():
        raise DataFormatError(f"{path} is {limit_advice()}")
    return path.read_bytes().decode("utf-8-sig", errors="replace")
