"""The labeling interface of a Label Studio project, its tasks and its annotations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from pydantic import TypeAdapter, ValidationError

from umpteen.serve.refusals import Refusal, in_words
from umpteen.serve.schemas import Names

_KINDS = ("Choices", "Taxonomy")
_NAMES = TypeAdapter(Names)
_LONGEST = 1_000_000  # characters: XML is parsed while others wait


@dataclass(frozen=True)
class Control:
    """The control for labels (`name`), its text (`to_name`), and the field of the text."""

    name: str = "labels"
    to_name: str = "text"
    field: str | None = None
    kind: str = "choices"
    is_multiple: bool = True
    choices: frozenset[str] = frozenset()

    def result(self, labels: list[str]) -> dict[str, Any]:
        """Return a result of Label Studio with these labels."""
        value: list[Any] = [[label] for label in labels] if self.kind == "taxonomy" else labels
        return {
            "from_name": self.name,
            "to_name": self.to_name,
            "type": self.kind,
            "value": {self.kind: value},
        }


def find_control(config: str) -> Control:
    """Return the first control of a labeling interface that takes labels of a text.

    >>> find_control('<View><Text name="t" value="$body"/><Choices name="c" toName="t"/></View>')
    Control(name='c', to_name='t', field='body', kind='choices', is_multiple=False, \
choices=frozenset())
    """
    if not config.strip():
        return Control()
    if len(config) > _LONGEST:
        raise ValueError(f"it has {len(config):,} characters; at most {_LONGEST:,} are allowed")
    if "<!DOCTYPE" in config or "<!ENTITY" in config:
        raise ValueError("a document type declaration is not allowed")
    root = ElementTree.fromstring(config)  # noqa: S314  no entities but those of XML itself
    values = {tag.get("name"): tag.get("value", "") for tag in root.iter() if tag.get("value")}
    for tag in root.iter():
        target = tag.get("toName")
        if tag.tag in _KINDS and target in values:
            choices = frozenset(choice.get("value", "") for choice in tag.iter("Choice"))
            return Control(
                tag.get("name", "labels"),
                target or "text",
                values[target].lstrip("$"),
                tag.tag.lower(),
                tag.tag == "Taxonomy" or tag.get("choice") == "multiple",
                choices - {""},
            )
    raise ValueError(f"it has no {' or '.join(_KINDS)} for a text")


def text_of(task: Mapping[str, Any], control: Control) -> str:
    """Return the text of a task: in the field of the control, in `text`, or the only one."""
    data = task.get("data")
    fields = data if isinstance(data, Mapping) else {}
    texts = {name: value for name, value in fields.items() if isinstance(value, str)}
    for name in (control.field, "text"):
        if name in texts:
            return _valid(texts[name])
    if len(texts) == 1:
        return _valid(next(iter(texts.values())))
    wanted = control.field or "text"
    raise Refusal(422, f"a task has no text in its data: expected the field {wanted!r}")


def labels_in(annotation: Mapping[str, Any], control: Control) -> list[str]:
    """Return the labels of an annotation or a prediction, each once."""
    found: dict[str, None] = {}
    results = annotation.get("result")
    for result in results if isinstance(results, list) else []:
        value = result.get("value") if isinstance(result, Mapping) else None
        if not isinstance(value, Mapping) or result.get("from_name", control.name) != control.name:
            continue
        labels = value.get("choices") or value.get("taxonomy")
        for label in labels if isinstance(labels, list) else []:
            name = label[-1] if isinstance(label, list) and label else label
            if isinstance(name, str) and name.strip():
                found[name.strip()] = None
    try:
        return _NAMES.validate_python(list(found))
    except ValidationError as problem:
        raise Refusal(422, f"labels: {in_words(problem.errors(include_input=False))}") from None


def _valid(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refusal(422, "this text has a lone surrogate: send valid Unicode") from None
    return text
