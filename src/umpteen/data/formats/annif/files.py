r"""Files of documents as Annif has them.

TSV without a header, `text<tab><uri> <uri>`; CSV with the columns `text`, `subject_uris` and
perhaps `document_id`; JSON Lines with `text`, `subjects` and perhaps `document_id`.
"""

import csv
import json
import re
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO

from umpteen.data.formats.annif.subjects import SubjectReader, SubjectWriter, bare
from umpteen.data.formats.delimited import rows
from umpteen.data.formats.json_objects import objects
from umpteen.data.formats.records import Record, batches, check_columns, records_of
from umpteen.data.formats.source import Source
from umpteen.data.label_vocabulary import LabelVocabulary
from umpteen.data.samples import Samples

_BREAKS = re.compile(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
_URIS, _ID = "subject_uris", "document_id"


def stream(
    source: Source, batch_size: int | None, vocabulary: LabelVocabulary | None = None
) -> Iterator[Samples]:
    """Return samples of the documents; labels are the URIs of their subjects."""
    return batches(_records(source, vocabulary), batch_size)


def write(
    samples: Samples, file: BinaryIO, vocabulary: LabelVocabulary | None = None, kind: str = "tsv"
) -> None:
    """Write one document per sample; `kind` is "tsv", "csv" or "jsonl"."""
    subjects = SubjectWriter(vocabulary)
    encode = {"tsv": _tsv_line, "csv": _csv_line, "jsonl": _json_line}[kind]
    if kind == "csv":
        with_ids = [_ID] * (samples.ids is not None)
        file.write(_csv([*with_ids, "text", _URIS]))
    for i, record in enumerate(records_of(samples, "annif")):
        file.write(encode(record, subjects, i))


def kind_of(name: str, head: bytes = b"") -> str:
    """Return which kind of file a name, or else its content, shows.

    >>> kind_of("train.csv.gz"), kind_of("train.tsv"), kind_of("-", b'{"text": "a"}')
    ('csv', 'tsv', 'jsonl')
    """
    name = name.lower().removesuffix(".gz")
    for kind in ("csv", "tsv", "jsonl"):
        if name.endswith(f".{kind}"):
            return kind
    first = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0]
    if first.startswith(b"{"):
        return "jsonl"
    return "csv" if _URIS.encode() in first else "tsv"


def subjects_of_object(item: dict[str, Any]) -> Iterator[tuple[str, str]] | None:
    """Return the subjects of a JSON document, or None if they are not as Annif has them."""
    subjects = item.get("subjects", [])
    if not isinstance(subjects, list):
        return None
    pairs = [(one.get("uri", ""), one.get("label", "")) for one in subjects if type(one) is dict]
    sound = len(pairs) == len(subjects) and all(
        isinstance(value, str) for pair in pairs for value in pair
    )
    return iter(pairs) if sound else None


def _records(source: Source, vocabulary: LabelVocabulary | None) -> Iterator[Record]:
    subjects = SubjectReader(vocabulary)
    kind = kind_of(source.name, source.head)
    read = {"tsv": _tsv_records, "csv": _csv_records, "jsonl": _json_records}[kind]
    yield from read(source, subjects)
    subjects.warn(source.name)


def _tsv_records(source: Source, subjects: SubjectReader) -> Iterator[Record]:
    n_without, first_without, n_with, n_plain = 0, 0, 0, 0
    unlabelled = b"\t" not in source.head and len(source.head) > 0
    for number, line in source.lines():
        text, tab, uris = line.partition("\t")
        if tab:
            n_with += 1
            yield Record(text, subjects.labels((bare(uri), "") for uri in uris.split()))
        elif unlabelled and text.strip() and not n_with:
            n_plain += 1
            yield Record(text.strip())
        elif text.strip():
            n_without += 1
            first_without = first_without or number
    if n_plain and n_with:
        warnings.warn(
            f"{source.name}: the first {n_plain:,} texts have no tab, and others do: these texts "
            "were read as texts without labels. Expected a text, a tab, and URIs",
            stacklevel=4,
        )
    if n_without:
        warnings.warn(
            f"{source.name}: {n_without:,} lines without a tab were left out, as Annif does; the "
            f"first is line {first_without:,}. Expected a text, a tab, and URIs",
            stacklevel=4,
        )


def _csv_records(source: Source, subjects: SubjectReader) -> Iterator[Record]:
    table = rows(source, ",", quoted=True)
    line, columns = next(table, (0, None))
    if columns is None:
        return
    try:
        check_columns(columns, "text", _URIS, _ID)
    except KeyError as problem:
        raise source.error(problem.args[0], line) from None
    if "text" not in columns:
        raise source.error(f"no column 'text' among {', '.join(columns)!r:.200}", line)
    for line, row in table:
        if len(row) != len(columns):
            raise source.error(f"{len(row)} cells, but the header has {len(columns)}", line)
        cells = dict(zip(columns, row, strict=True))
        labels = None
        if _URIS in cells:
            labels = subjects.labels((bare(uri), "") for uri in cells[_URIS].split())
        yield Record(cells["text"], labels, cells.get(_ID))


def _json_records(source: Source, subjects: SubjectReader) -> Iterator[Record]:
    for number, item in objects(source):
        text, found = item.get("text", ""), subjects_of_object(item)
        if not isinstance(text, str):
            raise source.error(f"'text' is {text!r:.80}; expected a text", number)
        if found is None:
            raise source.error(
                'expected subjects such as [{"uri": "http://...", "label": "dogs"}]', number
            )
        given_id = item.get(_ID)
        labels = subjects.labels(found) if "subjects" in item else None
        yield Record(text, labels, None if given_id is None else str(given_id))


def _tsv_line(record: Record, subjects: SubjectWriter, i: int) -> bytes:
    # A document is one line: its line ends and tabs become spaces.
    text = _BREAKS.sub(" ", record.text)
    uris = " ".join(f"<{subjects.uri(label, i)}>" for label in record.labels or [])
    return f"{text}\t{uris}\n".encode()


def _csv_line(record: Record, subjects: SubjectWriter, i: int) -> bytes:
    uris = " ".join(f"<{subjects.uri(label, i)}>" for label in record.labels or [])
    own_id = [] if record.id is None else [record.id]
    return _csv([*own_id, record.text, uris])


def _json_line(record: Record, subjects: SubjectWriter, i: int) -> bytes:
    item: dict[str, Any] = {} if record.id is None else {_ID: record.id}
    item["text"] = record.text
    if record.labels is not None:
        item["subjects"] = [
            {"uri": subjects.uri(label, i), "label": subjects.name(label)}
            for label in record.labels
        ]
    return (json.dumps(item, ensure_ascii=False) + "\n").encode()


class _Line:
    """What the csv module writes one row to."""

    content = ""

    def write(self, text: str) -> int:
        self.content += text
        return len(text)


def _csv(cells: list[str]) -> bytes:
    line = _Line()
    csv.writer(line).writerow(cells)
    return line.content.encode()
