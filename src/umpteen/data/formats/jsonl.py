r"""JSONL: an object per line, `{"id": "7", "text": "some text", "labels": ["a", "b"]}`.

An array of such objects, `[{...}, {...}]`, is read as well.
"""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from umpteen.data.formats.json_objects import check_once, objects
from umpteen.data.formats.label_cells import LabelLists
from umpteen.data.formats.records import (
    Record,
    batches,
    find_fields,
    find_group,
    group_name,
    records_of,
)
from umpteen.data.formats.source import Readable, Source, open_source
from umpteen.data.samples import Samples


def stream(
    source: Source,
    batch_size: int | None,
    text_field: str = "text",
    labels_field: str | None = None,
    group_field: str | None = None,
) -> Iterator[Samples]:
    """Return samples of the objects; blank lines are ignored.

    Labels are a list of names, or one name; numbers are names too, and `""` is none. Where
    `labels_field` is not given, `labels` is taken if it is there. With `group_field`, which has the
    name of a sample's group, an object need not have labels.
    """
    return batches(_records(source, text_field, labels_field, group_field), batch_size)


def write(
    samples: Samples, file: BinaryIO, text_field: str = "text", labels_field: str = "labels"
) -> None:
    """Write one object per sample."""
    for record in records_of(samples, "jsonl"):
        item: dict[str, Any] = {} if record.id is None else {"id": record.id}
        item[text_field] = record.text
        if record.labels is not None:
            item[labels_field] = record.labels
        file.write((json.dumps(item, ensure_ascii=False) + "\n").encode())


def read_label_texts(path: Readable) -> dict[str, str]:
    """Read label texts from a file with an object `{"label": ..., "text": ...}` per line.

    Other fields are ignored. Pass the result to a method as `label_texts`.
    """
    with open_source(path) as source:
        source.format = "label texts"
        texts: dict[str, str] = {}
        for number, item in objects(source):
            check_once(source, number, item, "label", "text")
            label = _text(source, number, item, "label")
            if not label:
                raise source.error("the label is ''; expected its name", number)
            if label in texts:
                raise source.error(f"the label {label!r} is here for the second time", number)
            texts[label] = _text(source, number, item, "text")
        return texts


def _records(
    source: Source, text_field: str, labels_field: str | None, group_field: str | None
) -> Iterator[Record]:
    lists = LabelLists()
    for number, item in objects(source):
        wanted = "" if group_field and labels_field and labels_field not in item else labels_field
        try:
            text_name, labels_name = find_fields(item.keys(), text_field, wanted)
            find_group(item.keys(), group_field)
            group = None if group_field is None else group_name(item[group_field], group_field)
        except KeyError as problem:
            raise source.error(problem.args[0], number) from None
        check_once(source, number, item, text_name, labels_name, "id", group_field)
        is_group = group is not None and text_name == group_field
        text = str(group) if is_group else _text(source, number, item, text_name)
        labels = None if labels_name is None else lists.names(item[labels_name])
        if labels is None and labels_name is not None:
            raise source.error(
                f"{labels_name!r} is {item[labels_name]!r:.80}; expected a list of names, as in "
                '["a", "b"]',
                number,
            )
        given_id = item.get("id")
        yield Record(text, labels, None if given_id is None else str(given_id), group)
    lists.warn(source.name)


def _text(source: Source, number: int, item: dict[str, Any], field: str) -> str:
    text = item.get(field)
    if not isinstance(text, str):
        advice = '; pandas writes rows with to_json(orient="records")' * isinstance(text, dict)
        raise source.error(f"{field!r} is {text!r:.80}; expected a text{advice}", number)
    return text
