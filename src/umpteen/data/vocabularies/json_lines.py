"""JSON Lines: `{"label": "7", "name": "dog", "alternatives": ["hound"], "parents": ["3"]}`."""

from typing import Any

from umpteen.data.formats.json_objects import check_once, objects
from umpteen.data.formats.records import label_names
from umpteen.data.formats.source import Source
from umpteen.data.label_vocabulary import Concept
from umpteen.data.vocabularies.languages import clean

_TEXTS = ("label", "name", "text", "uri", "notation")
_LISTS = ("alternatives", "parents")


def read(source: Source, name_separator: str | None) -> list[Concept]:
    """Return the concepts of the objects; other fields are ignored.

    With a `name_separator`, the text of an object without a name is a list of names.
    """
    concepts: dict[str, Concept] = {}
    for number, item in objects(source):
        check_once(source, number, item, *_TEXTS, *_LISTS)
        concept = _concept(source, number, item, name_separator)
        if concept.label in concepts:
            raise source.error(f"the label {concept.label!r} is here for the second time", number)
        concepts[concept.label] = concept
    return list(concepts.values())


def _concept(
    source: Source, number: int, item: dict[str, Any], name_separator: str | None
) -> Concept:
    texts = {field: _text(source, number, item, field) for field in _TEXTS}
    lists = {field: _list(source, number, item, field) for field in _LISTS}
    label, name, text = texts["label"], clean(texts["name"]), texts["text"].strip()
    if not label:
        raise source.error("the label is missing or ''; expected its name", number)
    alternatives = [clean(each) for each in lists["alternatives"]]
    if name_separator and not name:
        name, *more = [clean(each) for each in text.split(name_separator)]
        alternatives, text = more + alternatives, ""
    others = [each for each in dict.fromkeys(alternatives) if each and each != name]
    uri = texts["uri"] or (label if "://" in label else "")
    parents = tuple(dict.fromkeys(lists["parents"]))
    return Concept(label, name, tuple(others), text, parents, uri, texts["notation"])


def _text(source: Source, number: int, item: dict[str, Any], field: str) -> str:
    text = item.get(field)
    if text is not None and not isinstance(text, str):
        raise source.error(f"{field!r} is {text!r:.80}; expected a text", number)
    return text or ""


def _list(source: Source, number: int, item: dict[str, Any], field: str) -> list[str]:
    names = label_names(item.get(field))
    if names is None:
        raise source.error(
            f'{field!r} is {item[field]!r:.80}; expected a list of texts, as in ["a", "b"]', number
        )
    return names
