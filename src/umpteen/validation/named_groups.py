"""Groups of texts and their labels, both by name."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen.errors import GroupsError, LabelsError
from umpteen.validation.columns import cells, is_missing, is_table
from umpteen.validation.groups import check_groups
from umpteen.validation.texts import check_not_rows, every_name

_WORDS_OF_TEXTS = {"samples out of X": "texts out", "sample": "text", "X has": "there are"}


@dataclass(frozen=True, eq=False)
class NamedGroups:
    """Which texts form which group, and the labels of each group; a repeated label is a count."""

    names: list[Hashable]  # (n_groups,)
    members: csr_matrix  # (n_groups, n_texts)
    labels: list[list[str]]  # (n_groups,)

    @property
    def repeats_labels(self) -> bool:
        """Whether a label is repeated in any group, so that repetitions are counts."""
        return any(len(set(labels)) < len(labels) for labels in self.labels)

    def check_counts(self) -> None:
        """Refuse a label that is repeated more often than its group has texts."""
        for name, labels, size in zip(
            self.names, self.labels, np.diff(self.members.indptr).tolist(), strict=True
        ):
            for label, count in Counter(labels if len(labels) > size else ()).items():
                if count > size:
                    raise GroupsError(
                        f"the label {label!r} is {count} times in group {name!r}, which has "
                        f"{_texts(size)}: a repeated label says how many texts have it. If that is "
                        "not what you mean, give each label once"
                    )


def check_named_groups(groups: Any, group_labels: Any, n_texts: int) -> NamedGroups:
    """Return groups of texts, given by the name of each text's group or by lists of texts.

    `groups` has the group of each text, or, for each group, a list with the numbers of its texts
    (or is a matrix `(n_groups, n_texts)`); such groups are named by their numbers. `group_labels`
    is a dictionary (or a pandas Series) from groups to lists of label names, or has these lists in
    the order in which the groups first appear.

    >>> found = check_named_groups(["b", "a", "b"], {"a": ["x"], "b": ["y", "y"]}, n_texts=3)
    >>> found.names, found.labels, found.members.toarray().tolist()
    (['b', 'a'], [['y', 'y'], ['x']], [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    """
    if groups is None or group_labels is None:
        missing = "groups" if groups is None else "group_labels"
        raise GroupsError(
            f"{missing} is missing: groups has the group of each text, and group_labels the "
            "labels of each group; both are needed"
        )
    names, members = _members(groups, n_texts)
    lists = _in_order(group_labels, names)
    for name, labels, size in zip(names, lists, np.diff(members.indptr), strict=True):
        if size == 0 and labels:
            raise GroupsError(
                f"group {name!r} has labels but no texts to assign them to: leave it out"
            )
    return NamedGroups(names, members, lists)


def _members(groups: Any, n_texts: int) -> tuple[list[Hashable], csr_matrix]:
    if isinstance(groups, str | bytes | Mapping) or not isinstance(groups, Iterable):
        raise GroupsError(
            f"groups is {groups!r:.60}, a {type(groups).__name__}; expected the group of each "
            "text, or a list with the numbers of each group's texts"
        )
    is_matrix = sparse.issparse(groups) or (isinstance(groups, np.ndarray) and groups.ndim == 2)
    rows: Any = groups if is_matrix else list(cells(groups, "groups", GroupsError))
    if is_matrix or any(isinstance(row, list | set | range | np.ndarray) for row in rows):
        members = _numbered(rows, n_texts)
        return list(range(members.shape[0])), members
    if len(rows) != n_texts:
        raise GroupsError(
            f"{n_texts:,} texts but groups has {len(rows):,} entries; expected the group of each "
            "text, or a list of lists with the numbers of each group's texts"
        )
    numbers: dict[Hashable, int] = {}
    group_of = [numbers.setdefault(_group_name(row, i), len(numbers)) for i, row in enumerate(rows)]
    places = (np.array(group_of, np.int32), np.arange(n_texts, dtype=np.int32))
    shape = (len(numbers), n_texts)
    return list(numbers), csr_matrix((np.ones(n_texts, np.float32), places), shape=shape)


def _numbered(groups: Any, n_texts: int) -> csr_matrix:
    """Groups by the numbers of their texts; errors speak of texts."""
    try:
        return check_groups(groups, n_samples=n_texts)
    except GroupsError as error:
        message = str(error)
        for word, ours in _WORDS_OF_TEXTS.items():
            message = message.replace(word, ours)
        raise GroupsError(message) from None


def _group_name(name: Any, text: int) -> Hashable:
    if is_missing(name):
        raise GroupsError(
            f"text {text:,} has no group ({name!r}), so nothing is known about it: leave it out, "
            "or give it a group of its own"
        )
    try:
        hash(name)
    except TypeError:
        raise GroupsError(
            f"groups[{text}] is {name!r:.60}, a {type(name).__name__}; expected the name of a "
            "group: a text or a number"
        ) from None
    return _plain(name)


def _plain(name: Any) -> Hashable:
    """A name of numpy as Python's own, which is equal to it and hashed alike."""
    plain: Hashable = name.item() if isinstance(name, np.generic) else name
    return plain


def _in_order(group_labels: Any, names: list[Hashable]) -> list[list[str]]:
    """The labels of each group, with repetitions."""
    if sparse.issparse(group_labels) or (
        isinstance(group_labels, np.ndarray) and group_labels.ndim == 2
    ):
        raise LabelsError(
            "group_labels is a matrix; expected a dictionary from groups to lists of label names. "
            "For matrices, use Eagle"
        )
    if isinstance(group_labels, str | bytes) or not isinstance(group_labels, Iterable):
        raise LabelsError(
            f"group_labels is {group_labels!r:.60}, a {type(group_labels).__name__}; expected a "
            "dictionary from groups to lists of label names, or these lists in order"
        )
    if is_table(group_labels):
        raise LabelsError(
            "group_labels is a table; expected a dictionary from groups to lists of label names, "
            "such as dict(zip(table['group'], table['labels']))"
        )
    if hasattr(group_labels, "index") and hasattr(group_labels, "to_dict"):
        if not group_labels.index.is_unique:
            twice = group_labels.index[group_labels.index.duplicated()][0]
            raise GroupsError(
                f"group_labels has the group {twice!r} twice: expected one list for each group"
            )
        group_labels = group_labels.to_dict()  # a pandas Series is by its index, not by its order
    if isinstance(group_labels, Mapping):
        group_labels = {_plain(name): labels for name, labels in group_labels.items()}
        _check_same_groups(group_labels, names)
        given = [group_labels[name] for name in names]
    else:
        given = list(group_labels)
        if len(given) != len(names):
            raise GroupsError(
                f"{_groups(len(names))} but labels of {len(given):,}; expected a dictionary from "
                "groups to lists of label names, or a list for each group, in the order in which "
                "the groups first appear"
            )
    check_not_rows(given, "group_labels", repeats=True)
    return [
        every_name(labels, f"group_labels[{name!r}]")
        for name, labels in zip(names, given, strict=True)
    ]


def _check_same_groups(group_labels: Mapping[Any, Any], names: list[Hashable]) -> None:
    present = set(names)
    missing = [name for name in names if name not in group_labels]
    extra = [name for name in group_labels if name not in present]
    if missing and {str(name) for name in missing} & {str(name) for name in extra}:
        raise GroupsError(
            f"the group {missing[0]!r} of groups is not in group_labels, which has {extra[0]!r}: "
            "a number and a text are two groups"
        )
    if extra:
        raise GroupsError(
            f"group_labels has the group {extra[0]!r}, but no text is in it "
            f"({_groups(len(extra))} in all): leave such groups out, or check how they are written "
            "in groups"
        )
    if missing:
        raise GroupsError(
            f"the group {missing[0]!r} is not in group_labels "
            f"({_groups(len(missing))} in all): an empty list says that its texts have no labels; "
            "if its labels are not known, leave out its texts"
        )


def _groups(n: int) -> str:
    return "1 group" if n == 1 else f"{n:,} groups"


def _texts(n: int) -> str:
    return "1 text" if n == 1 else f"{n:,} texts"
