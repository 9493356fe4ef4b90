"""New labels in the forms that people give them."""

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from umpteen.errors import LabelsError, LabelsShapeError
from umpteen.validation import check_names, check_texts


@dataclass(frozen=True)
class NewLabels:
    """Names that are new, the texts that have each of them, and their own texts where given."""

    names: list[str]
    examples: Mapping[str, list[str]]
    own_texts: Mapping[str, str]

    @classmethod
    def checked(cls, names: Any, own_texts: Any, examples: Any) -> "NewLabels":
        """Return the new labels that the arguments of `Tagger.add_labels` describe."""
        names = check_names(names)
        if not names:
            raise LabelsError("there are no names: which labels are new?")
        texts = _by_name(own_texts, names, "texts")
        lists = {
            name: check_texts(found, f"examples of {name!r}")
            for name, found in _by_name(examples, names, "examples").items()
        }
        for name in names:
            if not lists.get(name) and not str(texts.get(name) or "").strip():
                raise LabelsError(
                    f"{name!r} has neither examples nor a text: there is nothing to learn"
                )
        own = dict(zip(texts, check_texts(texts.values(), "texts of labels"), strict=True))
        # a text alone is the one example that there is
        return cls(names, {name: lists.get(name) or [own[name]] for name in names}, own)


def examples_of(
    texts: list[str], lists: list[list[str]], names: Iterable[str]
) -> dict[str, list[str]]:
    """Return the texts that have each of some names."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for text, own in zip(texts, lists, strict=True):
        for name in own:
            if name in found:
                found[name].append(text)
    return found


def _by_name(given: Any, names: list[str], what: str) -> dict[str, Any]:
    """Something for each name: a dictionary, or a list in the order of the names."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        given = _in_order(given, names, what)
    known = set(names)
    strangers = [str(name) for name in given if str(name) not in known]
    if strangers:
        raise LabelsError(f"{what} has {strangers[0]!r}, which is not among the names")
    return {
        str(name): value
        for name, value in given.items()
        if value is not None and (not isinstance(value, Sized) or len(value))
    }


def _in_order(given: Any, names: list[str], what: str) -> dict[str, Any]:
    given = given.tolist() if isinstance(given, np.ndarray) else given
    values = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    if what == "examples" and len(names) == 1 and all(isinstance(value, str) for value in values):
        return {names[0]: values}
    if len(values) != len(names):
        raise LabelsShapeError(
            f"{len(names):,} names but {what} for {len(values):,}; expected a dictionary by name, "
            f"or a list with the {what} of each name in order"
        )
    return dict(zip(names, values, strict=True))
