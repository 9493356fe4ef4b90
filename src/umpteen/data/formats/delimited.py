r"""CSV and TSV: a header row, a column of texts, a column of labels such as `a|b`."""

import csv
from collections.abc import Iterator
from typing import BinaryIO

from umpteen.data.formats.label_cells import LabelCells
from umpteen.data.formats.records import (
    Record,
    batches,
    check_columns,
    find_fields,
    find_group,
    group_name,
    records_of,
)
from umpteen.data.formats.source import Source
from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError, ParameterError
from umpteen.limits import max_line_bytes

_LONGEST_TEXT = 2**31 - 1
_DELIMITERS = ",;\t"  # of CSV; spreadsheets write ; where numbers have decimal commas


def stream(
    source: Source,
    batch_size: int | None,
    text_field: str = "text",
    labels_field: str | None = None,
    label_separator: str = "|",
    quoted: bool = True,
    group_field: str | None = None,
) -> Iterator[Samples]:
    """Return samples of the rows; blank rows are ignored.

    With `quoted=False` a quotation mark is a character like any other. Where `labels_field` is
    not given, a column `labels` is taken if it is there; so is a column `id`. Cells of CSV may
    also be separated by `;` or tabs, which the header tells. The column `group_field` has the name
    of a sample's group.
    """
    _check_separator(label_separator)
    found = rows(source, _delimiter(source, text_field), quoted)
    fields = (text_field, labels_field, group_field)
    return batches(_records(source, found, *fields, label_separator), batch_size)


def write_csv(
    samples: Samples,
    file: BinaryIO,
    text_field: str = "text",
    labels_field: str = "labels",
    label_separator: str = "|",
) -> None:
    """Write one row per sample, under a header."""
    _write(samples, file, ",", text_field, labels_field, label_separator)


def write_tsv(
    samples: Samples,
    file: BinaryIO,
    text_field: str = "text",
    labels_field: str = "labels",
    label_separator: str = "|",
) -> None:
    """Write one row per sample, under a header."""
    _write(samples, file, "\t", text_field, labels_field, label_separator)


def _delimiter(source: Source, text_field: str) -> str:
    """What is between cells: in CSV, whatever makes most sense of the header."""
    if source.format == "tsv":
        return "\t"
    start = source.head.decode("utf-8-sig", errors="replace").lstrip("\r\n")
    header = start.partition("\n")[0]
    columns = {one: [cell.strip('" \r') for cell in header.split(one)] for one in _DELIMITERS}
    return max(_DELIMITERS, key=lambda one: (text_field in columns[one], len(columns[one])))


def rows(source: Source, delimiter: str, quoted: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the number of its last line."""
    csv.field_size_limit(_LONGEST_TEXT)  # documents are longer than the module's 128 kB
    lines = _RowLines(source)
    reader = csv.reader(
        lines,
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        strict=True,
    )
    try:
        for row in reader:
            lines.size = 0
            if row:
                yield reader.line_num, row
    except csv.Error as problem:
        raise source.error(
            f"{problem}; where quotation marks are plain characters, use quoted=False",
            reader.line_num,
        ) from None


class _RowLines:
    """The lines of a file, with a limit on the length of one row, which may span several lines.

    `size` is that of the row so far.
    """

    def __init__(self, source: Source) -> None:
        self.size = 0
        self._source, self._lines, self._most = source, source.lines(), max_line_bytes()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        number, line = next(self._lines)
        self.size += len(line) + 1
        if self.size > self._most:
            raise self._source.too_long(number)
        return line + "\n"


def _records(
    source: Source,
    rows: Iterator[tuple[int, list[str]]],
    text_field: str,
    labels_field: str | None,
    group_field: str | None,
    label_separator: str,
) -> Iterator[Record]:
    line, columns = next(rows, (0, None))
    if columns is None:
        return
    try:
        text_name, labels_name = find_fields(columns, text_field, labels_field)
        find_group(columns, group_field)
        check_columns(columns, text_name, labels_name, "id", group_field)
    except KeyError as problem:
        raise source.error(problem.args[0], line) from None
    label_cells = LabelCells(label_separator)
    for line, row in rows:
        if len(row) != len(columns):
            raise source.error(f"{len(row)} cells, but the header has {len(columns)}", line)
        cells = dict(zip(columns, row, strict=True))
        labels = None if labels_name is None else label_cells.names(cells[labels_name])
        try:
            group = None if group_field is None else group_name(cells[group_field], group_field)
        except KeyError as problem:
            raise source.error(problem.args[0], line) from None
        yield Record(cells[text_name], labels, cells.get("id"), group)
    label_cells.warn(source.name)


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
        if any(label_separator in name for name in names):
            raise DataFormatError(
                f"sample {i} has the labels {names!r}, one of them with the separator "
                f"{label_separator!r}; choose another label_separator="
            )
        if any(name != name.strip() for name in names):
            raise DataFormatError(
                f"sample {i} has the labels {names!r}: spaces around names would be lost; "
                "take them away, or write jsonl"
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
