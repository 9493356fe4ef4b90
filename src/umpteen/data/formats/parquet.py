"""Parquet, with the optional part `parquet`: a column of texts, a column of label lists."""

import io
from collections.abc import Iterator
from typing import Any, BinaryIO

from umpteen.data.formats.label_cells import LabelLists
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
from umpteen.extras import require

_ROWS_AT_ONCE = 4096
_ABSENT = object()


def stream(
    source: Source,
    batch_size: int | None,
    text_field: str = "text",
    labels_field: str | None = None,
    group_field: str | None = None,
) -> Iterator[Samples]:
    """Yield samples of the rows; labels are lists of names, or one name or number per row.

    Where `labels_field` is not given, a column `labels` is taken if it is there; so is `id`. The
    column `group_field` has the name of a sample's group.
    """
    return batches(_records(source, text_field, labels_field, group_field), batch_size)


def write(
    samples: Samples, file: BinaryIO, text_field: str = "text", labels_field: str = "labels"
) -> None:
    """Write one row per sample, some thousand rows at a time."""
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    text = arrow.large_string()
    columns: list[Any] = [] if samples.ids is None else [("id", text)]
    columns.append((text_field, text))
    if samples.labels is not None:
        columns.append((labels_field, arrow.list_(text)))
    schema = arrow.schema(columns)
    with parquet.ParquetWriter(file, schema) as writer:
        for part in batches(records_of(samples, "parquet"), _ROWS_AT_ONCE):
            arrays = [array for array in (part.ids, part.texts, part.labels) if array is not None]
            writer.write_table(arrow.table(arrays, schema=schema))


def _records(
    source: Source, text_field: str, labels_field: str | None, group_field: str | None
) -> Iterator[Record]:
    lists = LabelLists()
    for row, item in enumerate(_rows(source, text_field, labels_field, group_field)):
        text, value, given_id, given_group = item
        group = None
        if group_field is not None:
            try:
                group = group_name(given_group, group_field)
            except KeyError as problem:
                raise source.error(f"row {row:,}: {problem.args[0]}") from None
            text = group if text_field == group_field else text
        labels = None if value is _ABSENT else lists.names(value)
        if not isinstance(text, str):
            raise source.error(f"row {row:,} has the text {text!r:.80}; expected a text")
        if labels is None and value is not _ABSENT:
            raise source.error(f"row {row:,} has the labels {value!r:.80}; expected names")
        yield Record(text, labels, None if given_id is None else str(given_id), group)
    lists.warn(source.name)


def _rows(
    source: Source, text_field: str, labels_field: str | None, group_field: str | None
) -> Iterator[tuple[Any, Any, Any, Any]]:
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    file = _seekable(source)
    try:
        table = parquet.ParquetFile(file)
        names = table.schema_arrow.names
        text_name, labels_name = find_fields(names, text_field, labels_field)
        find_group(names, group_field)
        check_columns(names, text_name, labels_name, "id", group_field)
        wanted = [name for name in {text_name, labels_name, "id", group_field} if name in names]
        for part in table.iter_batches(_ROWS_AT_ONCE, columns=wanted):
            for item in part.to_pylist():
                labels = item.get(labels_name, _ABSENT)
                yield item[text_name], labels, item.get("id"), item.get(group_field)
    except KeyError as problem:
        raise source.error(problem.args[0]) from None
    except (arrow.ArrowException, OSError, ValueError, OverflowError) as problem:
        raise source.error(f"not a sound Parquet file: {problem!s:.200}") from None


def _seekable(source: Source) -> Any:
    """Parquet begins at its end: a plain file as it is, anything else in memory."""
    if source.path is not None and source.compression is None:
        return source.path
    return io.BytesIO(b"".join(source.blocks()))
