r"""CSV and TSV: a header row, a column of texts, a column of labels such as `a|b`."""

import csv
from collections.abc import Iterator
from typing import BinaryIO

from umpteen.data.formats.records import Record, batches, find_fields, records_of
from umpteen.data.formats.source import Source
from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError, ParameterError

_LONGEST_TEXT = 2**31 - 1


def stream(
    source: Source,
    batch_size: int | None,
    text_field: str = "text",
    labels_field: str | None = None,
    label_separator: str = "|",
    quoted: bool = True,
) -> Iterator[Samples]:
    """Samples of the rows; blank rows are passed over.

    With `quoted=False` a quotation mark is a character like any other. Where `labels_field` is
    not given, a column `labels` is taken if it is there; so is a column `id`.
    """
    _check_separator(label_separator)
    rows = _rows(source, quoted)
    return batches(_records(source, rows, text_field, labels_field, label_separator), batch_size)


def write_csv(
    samples: Samples,
    file: BinaryIO,
    text_field: str = "text",
    labels_field: str = "labels",
    label_separator: str = "|",
) -> None:
    """One row per sample, under a header."""
    _write(samples, file, ",", text_field, labels_field, label_separator)


def write_tsv(
    samples: Samples,
    file: BinaryIO,
    text_field: str = "text",
    labels_field: str = "labels",
    label_separator: str = "|",
) -> None:
    """One row per sample, under a header."""
    _write(samples, file, "\t", text_field, labels_field, label_separator)


def _rows(source: Source, quoted: bool) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(_LONGEST_TEXT)  # documents are longer than the module's 128 kB
    reader = csv.reader(
        (line + "\n" for _, line in source.lines()),
        delimiter="\t" if source.format == "tsv" else ",",
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        strict=True,
    )
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as problem:
        raise source.error(
            f"{problem}; where quotation marks are plain characters, use quoted=False",
            reader.line_num,
        ) from None


def _records(
    source: Source,
    rows: Iterator[tuple[int, list[str]]],
    text_field: str,
    labels_field: str | None,
    label_separator: str,
) -> Iterator[Record]:
    line, columns = next(rows, (0, None))
    if columns is None:
        return
    try:
        text_name, labels_name = find_fields(columns, text_field, labels_field)
    except KeyError as problem:
        raise source.error(problem.args[0], line) from None
    for line, row in rows:
        if len(row) != len(columns):
            raise source.error(f"{len(row)} cells, but the header has {len(columns)}", line)
        cells = dict(zip(columns, row, strict=True))
        labels = None
        if labels_name is not None:
            labels = [name for name in cells[labels_name].split(label_separator) if name]
        yield Record(cells[text_name], labels, cells.get("id"))


def _write(
    samples: Samples,
    file: BinaryIO,
    delimiter: str,
    text_field: str,
    labels_field: str,
    label_separator: str,
) -> None:
    _check_separator(label_separator)
    writer = csv.writer(_Encoded(file), delimiter=delimiter)
    with_ids, with_labels = samples.ids is not None, samples.labels is not None
    writer.writerow(["id"] * with_ids + [text_field] + [labels_field] * with_labels)
    for i, record in enumerate(records_of(samples, "csv")):
        names = record.labels or []
        if not all(name and label_separator not in name for name in names):
            raise DataFormatError(
                f"sample {i} has the labels {names!r}: an empty name, or one with the separator "
                f"{label_separator!r}; choose another label_separator="
            )
        cells = [record.text] + [label_separator.join(names)] * with_labels
        writer.writerow([record.id] * with_ids + cells)


def _check_separator(separator: str) -> None:
    if not separator:
        raise ParameterError("label_separator='' separates nothing; use for example '|'")


class _Encoded:
    """What the csv module writes texts to."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())
