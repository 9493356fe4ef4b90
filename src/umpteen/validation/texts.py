"""Texts and the names of their labels, in the forms that people have."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse

from umpteen.errors import LabelsError, LabelsShapeError, TextsError, warn_caller
from umpteen.validation.columns import cells, is_missing
from umpteen.validation.indicators import doubt_of_names

_WRITTEN_LIST = re.compile(r"""\s*\[\s*(?:(['"]).*\1\s*)?\]\s*""", re.DOTALL)
_SHARE = 0.2  # of the labels; in fewer, it is rather a part of a name


def check_texts(texts: Any, name: str = "texts") -> list[str]:
    """Return a list of texts, each of them checked.

    >>> check_texts(("a cat", "")), check_texts(np.array(["a dog"]))
    (['a cat', ''], ['a dog'])
    """
    if isinstance(texts, str | bytes):
        raise TextsError(
            f"{name} is the single text {_shortened(texts)}; expected a list of texts: wrap it, "
            "[text]"
        )
    texts = cells(texts, name, TextsError)  # numpy's own texts are slow, too
    if not isinstance(texts, Iterable) or isinstance(texts, str | bytes | Mapping):
        raise TextsError(
            f"{name} is {_shortened(texts)}, a {type(texts).__name__}; expected a list of texts"
            f"{_where_they_are(texts)}"
        )
    found: list[str] = texts if type(texts) is list else list(texts)
    if not set(map(type, found)) <= {str}:
        _check_each(found, name)
    return found


def _where_they_are(data: Any) -> str:
    """Return advice if samples, a split or a whole data set are given in place of their texts."""
    if hasattr(data, "texts"):
        return ": pass its .texts, and its .labels as labels"
    return ": pass .train.texts, and .train.labels as labels" if hasattr(data, "train") else ""


def check_text(text: Any, name: str = "text") -> str:
    """Return a single text.

    >>> check_text("a cat")
    'a cat'
    """
    if isinstance(text, list | tuple):
        raise TextsError(
            f"{name} is {_shortened(text)}, a {type(text).__name__}; expected a single text, a str"
        )
    _check_text(text, name)
    return str(text)


def _check_each(texts: list[Any], name: str) -> None:
    for i, text in enumerate(texts):
        _check_text(text, f"{name}[{i}]")


def _check_text(text: Any, name: str) -> None:
    if not isinstance(text, str):
        advice = (
            'decode it, text.decode("utf-8")'
            if isinstance(text, bytes)
            else 'an empty text "" stands for a missing one'
        )
        raise TextsError(
            f"{name} is {_shortened(text)}, a {type(text).__name__}; expected a str: {advice}"
        )


def _shortened(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:56]} ..."


def check_label_lists(labels: Any, n_texts: int) -> list[list[str]]:
    """Return the label names of each text, without repetitions.

    Anything hashable is kept as text, and a name alone stands for a list of one.

    >>> check_label_lists([["b", "a", "b"], "c", (), 7], n_texts=4)
    [['b', 'a'], ['c'], [], ['7']]
    """
    if issparse(labels) or _is_indicator(labels):
        raise LabelsError(
            "labels is a matrix of zeros and ones; expected a list with the label names of each "
            "text. For matrices there are the classifiers, such as LabelTree"
        )
    labels = cells(labels, "labels", LabelsError)
    if isinstance(labels, str | bytes | Mapping) or not isinstance(labels, Iterable):
        raise LabelsError(
            f"labels is {_shortened(labels)}, a {type(labels).__name__}; expected a list with the "
            "label names of each text"
        )
    labels = list(labels)
    check_not_rows(labels, "labels")
    _warn_of_joined(labels)
    lists = [_names(names, f"labels[{i}]") for i, names in enumerate(labels)]
    if len(lists) != n_texts:
        raise LabelsShapeError(
            f"{n_texts:,} texts but {len(lists):,} lists of labels; expected the label names of "
            "each text, with an empty list for a text without labels"
        )
    return lists


def is_written_list(name: str) -> bool:
    """Return whether a name is rather a list that was written to a file as a text.

    >>> is_written_list("['bread', 'oven']"), is_written_list("bread"), is_written_list("[sic]")
    (True, False, False)
    """
    return name.startswith(("[", " ")) and _WRITTEN_LIST.fullmatch(name) is not None


def _warn_of_joined(labels: list[Any]) -> None:
    """Warn of names that stand alone and look like several, such as cells of a CSV file."""
    alone = [name for name in labels if isinstance(name, str)]
    for is_joined, kind, advice in (
        (is_written_list, "are lists written as a text", "labels.map(ast.literal_eval)"),
        (_has_bar, "have '|' between names", 'labels.str.split("|")'),
    ):
        joined = [name for name in alone if is_joined(name)]
        if joined and len(joined) >= _SHARE * len(alone):
            warn_caller(
                f"{len(joined):,} of {len(alone):,} labels {kind}, such as "
                f"{_shortened(joined[0])}, and each is read as one label: if these are several, "
                f"pass lists of names, with pandas {advice}"
            )


def _has_bar(name: str) -> bool:
    return "|" in name.strip("|")


def check_not_rows(lists: list[Any], name: str, *, repeats: bool = False) -> None:
    """Refuse lists of 0 and 1 that are rather rows of a matrix than label names, or warn of them.

    `repeats` says that a name may be in a list several times.
    """
    doubt = doubt_of_names(lists)
    if doubt == "repeated" and not (repeats and len(lists[0]) == 2):
        raise LabelsError(
            f"{name} is a list of lists of 0 and 1, which looks like a matrix; expected lists of "
            "label names, such as [label for label, has in zip(names, row) if has] for each row"
        )
    if doubt:
        warn_caller(
            f"{name} is a list of pairs of 0 and 1, which are read as the names '0' and '1', not "
            "as rows of a matrix"
        )


def _is_indicator(labels: Any) -> bool:
    return (
        isinstance(labels, np.ndarray)
        and labels.ndim == 2
        and labels.shape[1] > 1
        and labels.dtype.kind in "biuf"
        and bool(np.isin(labels, (0, 1)).all())
    )


def check_names(names: Any, name: str = "names") -> list[str]:
    """Return label names: a list of them, or one alone; each only once.

    >>> check_names("alone"), check_names([1, "b"])
    (['alone'], ['1', 'b'])
    """
    return _names(cells(names, name, LabelsError), name)


def check_label_texts(label_texts: Any) -> dict[str, str]:
    """Return texts of labels by name.

    >>> check_label_texts({7: "a lucky number"})
    {'7': 'a lucky number'}
    """
    if not isinstance(label_texts, Mapping):
        raise TextsError(
            f"label_texts is a {type(label_texts).__name__}; expected a dictionary from label "
            "names to texts"
        )
    found: dict[str, str] = {}
    for given, text in label_texts.items():
        name = _name(given, "label_texts")
        if name in found:
            raise LabelsError(
                f"label_texts has {name!r:.60} twice, as a number and as a text; keep one"
            )
        _check_text(text, f"label_texts[{given!r:.60}]")
        found[name] = text
    return found


def every_name(names: Any, where: str) -> list[str]:
    """Return label names as often as they are given: a list of them, or one alone."""
    if isinstance(names, Mapping):
        raise LabelsError(
            f"{where} is {_shortened(names)}, a {type(names).__name__}; expected a list of label "
            "names"
        )
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        return [_name(names, where)]
    names = list(names)
    _check_no_answer(names, where)
    return [_name(name, where) for name in names]


def _check_no_answer(value: Any, where: str) -> None:
    """Refuse a label with its probability, as it is in the answers of a tagger."""
    match value:
        case str(name), float(score):
            raise LabelsError(
                f"{where} has ({name!r:.60}, {score}), a label with its score; expected label "
                "names: [[name for name, _ in tags] for tags in answers] takes them from the "
                "answers of predict"
            )


def _names(names: Any, where: str) -> list[str]:
    return list(dict.fromkeys(every_name(names, where)))


def _name(name: Any, where: str) -> str:
    if type(name) is str:
        return name
    _check_no_answer(name, where)
    if is_missing(name) or isinstance(name, bytes) or not getattr(type(name), "__hash__", None):
        raise LabelsError(
            f"{where} has {name!r:.60}, which is not a label name; expected texts or numbers, "
            "and an empty list for a text without labels"
        )
    return str(name)
