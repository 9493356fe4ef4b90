"""Texts with label names and an id: what a line, a row or an object of a text format holds."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError, LabelsShapeError

LABELS_FIELD = "labels"
_CLOSE = 0.75  # names that may be the same: Text and text, but not ticket and text


class Record(NamedTuple):
    """One sample; `labels`, `id` and `group` are None where the file does not have them."""

    text: str
    labels: list[str] | None = None
    id: str | None = None
    group: str | None = None


def batches(records: Iterable[Record], size: int | None) -> Iterator[Samples]:
    """Yield samples of `size` records each; with None, all at once, even if there are none."""
    if size is None:
        yield _samples(list(records))
        return
    remaining = iter(records)
    while batch := list(islice(remaining, size)):
        yield _samples(batch)


def records_of(samples: Samples, written_as: str) -> Iterator[Record]:
    """Yield the samples one by one, to be written in a text format."""
    if samples.texts is None:
        raise DataFormatError(
            f"{written_as} holds texts, but these samples are matrices: "
            "write them as xmc or svmlight"
        )
    for name, values in (("labels", samples.labels), ("ids", samples.ids)):
        if values is not None and len(values) != len(samples.texts):
            raise LabelsShapeError(
                f"{len(samples.texts):,} texts but {len(values):,} {name}; each text has its own"
            )
    for i, text in enumerate(samples.texts):
        labels = None if samples.labels is None else samples.labels[i]
        if labels and "" in labels:
            raise DataFormatError(
                f"sample {i} has the labels {labels!r}, one of them an empty name: leave it out"
            )
        yield Record(text, labels, None if samples.ids is None else samples.ids[i])


def label_names(value: Any) -> list[str] | None:
    """Return label names out of a list, a single name or nothing; None for anything else.

    An empty name names nothing, and is ignored.

    >>> label_names(["a", 7, ""]), label_names("a"), label_names(7), label_names({"a": 1})
    (['a', '7'], ['a'], ['7'], None)
    """
    if value is None:
        return []
    names = [_label_name(item) for item in (value if isinstance(value, list) else [value])]
    return None if None in names else [name for name in names if name]


def find_fields(
    fields: Collection[str], text_field: str, labels_field: str | None
) -> tuple[str, str | None]:
    """Return which fields hold text and labels; a `KeyError` has advice where one is missing.

    Labels are optional unless their field is named, but a field that is nearly called so is
    rather a different spelling than an accident. With `labels_field=""` none are wanted.

    >>> find_fields(["text", "stars"], "text", None), find_fields(["text", "labels"], "text", "")
    (('text', None), ('text', None))
    >>> find_fields(["text", "label"], "text", None)
    Traceback (most recent call last):
    KeyError: "no 'labels' among 'text', 'label'; did you mean labels_field='label'?"
    """
    return _find_fields(tuple(fields), text_field, labels_field)


def find_group(fields: Collection[str], group_field: str | None) -> None:
    """Raise `KeyError` with advice if there is no field with that name."""
    if group_field is not None and group_field not in fields:
        raise KeyError(_missing(group_field, tuple(fields), "group_field"))


def group_name(value: Any, group_field: str) -> str:
    """Return the name of a group, a text or a number; a `KeyError` has advice.

    >>> group_name(7, "page"), group_name("intro", "page")
    ('7', 'intro')
    """
    name = _label_name(value)
    if name is None or not name.strip():
        raise KeyError(
            f"{group_field!r} is {value!r:.80}; expected the name of the sample's group, a text or "
            "a number: leave out samples of no group, or give each a group of its own"
        )
    return name


def check_columns(columns: Sequence[str], *used: str | None) -> None:
    """Raise `KeyError` if a column that is used appears more than once.

    >>> check_columns(["text", "labels", "text"], "text", "labels")
    Traceback (most recent call last):
    KeyError: "the columns 1 and 3 are both called 'text'; rename or remove one"
    """
    for name in used:
        places = [str(place) for place, column in enumerate(columns, 1) if column == name]
        if len(places) > 1:
            both = "both" if len(places) == 2 else "all"
            listed = f"{', '.join(places[:-1])} and {places[-1]}"
            raise KeyError(f"the columns {listed} are {both} called {name!r}; rename or remove one")


@lru_cache(maxsize=256)
def _find_fields(
    fields: tuple[str, ...], text_field: str, labels_field: str | None
) -> tuple[str, str | None]:
    if text_field not in fields:
        raise KeyError(_missing(text_field, fields, "text_field"))
    if labels_field == "":
        return text_field, None
    if labels_field is None and LABELS_FIELD not in fields:
        if not get_close_matches(LABELS_FIELD, fields, cutoff=_CLOSE):
            return text_field, None
        raise KeyError(_missing(LABELS_FIELD, fields, "labels_field"))
    labels_field = labels_field or LABELS_FIELD
    if labels_field not in fields:
        raise KeyError(_missing(labels_field, fields, "labels_field"))
    return text_field, labels_field


def _missing(name: str, fields: tuple[str, ...], option: str) -> str:
    shown = ", ".join(f"{field!r:.40}" for field in fields[:20]) or "no fields at all"
    close = get_close_matches(name, fields, n=1, cutoff=_CLOSE)
    advice = (
        f"did you mean {option}={close[0]!r}?" if close else f"name one of these with {option}="
    )
    return f"no {name!r} among {shown}; {advice}"


def _label_name(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _samples(records: list[Record]) -> Samples:
    labelled = not records or any(record.labels is not None for record in records)
    identified = bool(records) and all(record.id is not None for record in records)
    grouped = bool(records) and all(record.group is not None for record in records)
    return Samples(
        texts=[record.text for record in records],
        labels=[record.labels or [] for record in records] if labelled else None,
        ids=[record.id or "" for record in records] if identified else None,
        groups=[record.group or "" for record in records] if grouped else None,
    )
