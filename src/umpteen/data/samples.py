"""Samples: what one file holds, before names become numbers."""

from dataclasses import dataclass
from typing import Any

from scipy.sparse import csr_matrix


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
