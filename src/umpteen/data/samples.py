"""Samples: what one file holds, before names become numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from scipy.sparse import csr_matrix, vstack

from umpteen.errors import DataFormatError


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

    def __len__(self) -> int:
        return len(self.texts) if self.texts is not None else int(self.X.shape[0])


def join_samples(parts: list[Samples]) -> Samples:
    """Return the samples of several files as one; all are texts, or all are matrices.

    Labels are missing only if no part has any, and ids if any part has none.

    >>> join_samples([Samples(texts=["a"], labels=[["x"]]), Samples(texts=["b"])])
    Samples(texts=['a', 'b'], labels=[['x'], []], X=None, Y=None, ids=None, groups=None)
    """
    parts = [part for part in parts if len(part)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    if any((part.texts is None) != (parts[0].texts is None) for part in parts):
        raise DataFormatError("some of the files hold texts, and others matrices: read them apart")
    if parts[0].texts is None:
        labelled = any(part.Y is not None for part in parts)
        empty = (csr_matrix((len(part), 0)) if part.Y is None else part.Y for part in parts)
        return Samples(X=_stacked([p.X for p in parts]), Y=_stacked(empty) if labelled else None)
    return Samples(
        texts=[text for part in parts for text in part.texts or ()],
        labels=_labels(parts),
        ids=_named([part.ids for part in parts]),
        groups=_named([part.groups for part in parts]),
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


def _labels(parts: list[Samples]) -> list[list[str]] | None:
    if all(part.labels is None for part in parts):
        return None
    return [names for part in parts for names in part.labels or [[] for _ in range(len(part))]]


def _named(lists: list[list[str] | None]) -> list[str] | None:
    known = [names for names in lists if names is not None]
    return [name for names in known for name in names] if len(known) == len(lists) else None
