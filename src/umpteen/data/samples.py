"""Samples: what one file holds, before names become numbers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from scipy.sparse import csr_matrix, vstack

from umpteen.errors import (
    DataFormatError,
    LabelsError,
    LabelsShapeError,
    ParameterError,
    TextsError,
)


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of one file or one split of a data set.

    Either texts with label names (`texts`, `labels`), or numbers (`X`, `Y`). Without labels,
    `labels` and `Y` are None. `groups` has the name of each sample's group if the file
    was read with `group_field`; `labels` are then the labels of groups.
    """

    texts: list[str] | None = None
    labels: list[list[str]] | None = None
    X: Any = None
    Y: csr_matrix | None = None
    ids: list[str] | None = None
    groups: list[str] | None = None

    def __post_init__(self) -> None:
        """Refuse a text or a name in place of a list, and labels of fewer or more texts."""
        if isinstance(self.texts, str):
            raise TextsError(
                f"texts is the single text {self.texts!r:.60}; expected a list: [text]"
            )
        if isinstance(self.texts, Iterator):
            raise TextsError(
                f"texts is a {type(self.texts).__name__}, which can be read only once; expected a "
                "list: list(texts)"
            )
        if self.labels is not None:
            _check_lists(self.labels)
            if self.texts is not None and len(self.texts) != len(self.labels):
                raise LabelsShapeError(
                    f"{len(self.texts):,} texts but {len(self.labels):,} labels; expected the "
                    "label names of each text, with an empty list for a text without labels"
                )

    def __len__(self) -> int:
        return len(self.texts) if self.texts is not None else int(self.X.shape[0])


def check_samples(samples: Any, name: str = "samples") -> None:
    """Refuse texts, labels or a whole data set in place of samples."""
    if not hasattr(samples, "labels") or not hasattr(samples, "texts"):
        raise ParameterError(
            f"{name} is a {type(samples).__name__}; expected umpteen.data.Samples(texts, labels), "
            "or what umpteen.data.read returns"
        )


def _check_lists(labels: Any) -> None:
    """Look at the few types that there are, not at a million lists."""
    if _is_no_list(type(labels)) or isinstance(labels, Iterator):  # a look would use that up
        _refuse("labels", labels)
    wrong = tuple(kind for kind in set(map(type, labels)) if _is_no_list(kind))
    if wrong:
        i, names = next((i, each) for i, each in enumerate(labels) if isinstance(each, wrong))
        _refuse(f"labels[{i}]", names)


def _refuse(name: str, value: Any) -> None:
    raise LabelsError(
        f"{name} is {value!r:.60}, a {type(value).__name__}; expected a list of label names for "
        "each text, such as [['bread', 'baking'], []]"
    )


def _is_no_list(kind: type) -> bool:
    return issubclass(kind, str | bytes) or not hasattr(kind, "__iter__")


def join_samples(several: list[Samples]) -> Samples:
    """Return the samples of several files as one; all are texts, or all are matrices.

    Labels are missing only if no file has any, and ids if any file has none.

    >>> join_samples([Samples(texts=["a"], labels=[["x"]]), Samples(texts=["b"])])
    Samples(texts=['a', 'b'], labels=[['x'], []], X=None, Y=None, ids=None, groups=None)
    """
    several = [each for each in several if len(each)] or several[:1]
    if len(several) == 1:
        return several[0]
    if any((each.texts is None) != (several[0].texts is None) for each in several):
        raise DataFormatError("some of the files hold texts, and others matrices: read them apart")
    if several[0].texts is None:
        labelled = any(each.Y is not None for each in several)
        empty = (csr_matrix((len(each), 0)) if each.Y is None else each.Y for each in several)
        return Samples(X=_stacked([p.X for p in several]), Y=_stacked(empty) if labelled else None)
    return Samples(
        texts=[text for each in several for text in each.texts or ()],
        labels=_labels(several),
        ids=_named([each.ids for each in several]),
        groups=_named([each.groups for each in several]),
    )


def _stacked(matrices: Iterable[csr_matrix]) -> csr_matrix:
    """Rows below rows, as wide as the widest."""
    matrices = list(matrices)
    width = max(matrix.shape[1] for matrix in matrices)
    wide = [
        csr_matrix((each.data, each.indices, each.indptr), shape=(each.shape[0], width))
        for each in matrices
    ]
    return csr_matrix(vstack(wide, format="csr"))


def _labels(several: list[Samples]) -> list[list[str]] | None:
    if all(each.labels is None for each in several):
        return None
    return [names for each in several for names in each.labels or [[] for _ in range(len(each))]]


def _named(lists: list[list[str] | None]) -> list[str] | None:
    given = [names for names in lists if names is not None]
    return [name for names in given for name in names] if len(given) == len(lists) else None
