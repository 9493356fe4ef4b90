"""Answers written to a file: JSON Lines, or Parquet for data frames."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from umpteen.extras import require

Record = dict[str, Any]

_ROWS_AT_ONCE = 4096
_PARQUET = (".parquet", ".pq")


def as_line(record: Record) -> str:
    """Return a record as a line of JSON."""
    shown = {name: record[name] for name in ("id", "group", "text") if record.get(name) is not None}
    return json.dumps(
        {**shown, "labels": record["labels"]},
        ensure_ascii=False,
        default=lambda value: value.tolist(),
    )


def write_records(records: Iterator[Record], sink: Any, name: str) -> None:
    """Write answers in the format that a file name shows.

    A name that ends in .parquet or .pq gets a row per text, with the columns `id`, `group` and
    `text` where there are such, `labels` and `scores`; any other gets a line of JSON per text.
    """
    if name.lower().endswith(_PARQUET):
        _write_parquet(records, sink)
        return
    for record in records:
        sink.write((as_line(record) + "\n").encode())


def _write_parquet(records: Iterator[Record], sink: Any) -> None:
    arrow, parquet = require("pyarrow", "parquet"), require("pyarrow.parquet", "parquet")
    part = list(islice(records, _ROWS_AT_ONCE))
    first = part[0] if part else {"id": None, "text": None}
    text = arrow.large_string()
    columns = [(name, text) for name in ("id", "group", "text") if first.get(name) is not None]
    lists = [("labels", arrow.list_(text)), ("scores", arrow.list_(arrow.float64()))]
    schema = arrow.schema([*columns, *lists])
    with parquet.ParquetWriter(sink, schema) as writer:
        while part:
            rows = [_row(record, schema.names) for record in part]
            writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
            part = list(islice(records, _ROWS_AT_ONCE))


def _row(record: Record, columns: list[str]) -> Record:
    tags = record["labels"]
    row = {
        "labels": [str(tag["label"]) for tag in tags],
        "scores": [float(tag["score"]) for tag in tags],
    }
    return {name: row.get(name, record.get(name)) for name in columns}
