"""Label names and their ids, which never change."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, Self

import numpy as np
from scipy.sparse import csr_matrix

from umpteen.data.samples import Samples
from umpteen.data.vocabulary import label_vocabulary
from umpteen.errors import LabelsError
from umpteen.storage import Index, Shape, storable

_MOST_COMPARED = 100_000  # names that are looked at for what was meant: a second or so


@storable
@dataclass(eq=False, frozen=True)
class LabelNames:
    """The name of every label by id. A removed label keeps its id, which is not used again.

    >>> names = LabelNames.of([["b", "a"], ["c"]]).without(["b"]).with_new(["d"])
    >>> names.ids
    {'a': 0, 'c': 2, 'd': 3}
    """

    names: Annotated[list[str], Shape("labels")]
    removed: Annotated[list[int], Index("labels")] = field(default_factory=list)

    @classmethod
    def of(cls, labels: list[list[str]], label_texts: Mapping[str, str] | None = None) -> Self:
        """Return the labels of samples in alphabetical order, then those that only have a text."""
        samples = Samples(texts=[""] * len(labels), labels=labels)
        return cls(label_vocabulary([samples], label_texts or {}) or [])

    def __len__(self) -> int:
        """How many ids were ever given."""
        return len(self.names)

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each name that is there."""
        removed = set(self.removed)
        return {name: i for i, name in enumerate(self.names) if i not in removed}

    def id_of(self, name: Any) -> int:
        """Return the id of one name, or raise an error with what was perhaps meant."""
        if str(name) not in self.ids:
            raise self._unknown(str(name))
        return self.ids[str(name)]

    def matrix(self, labels: list[list[str]]) -> csr_matrix:
        """Return the labels of each text, (texts, ids); all names must be among these."""
        unknown = {name for names in labels for name in names} - self.ids.keys()
        if unknown:
            raise self._unknown(min(unknown))
        ids = [sorted(self.ids[name] for name in names) for names in labels]
        indptr = np.cumsum([0, *map(len, ids)])
        indices = np.fromiter(chain.from_iterable(ids), np.int32, count=indptr[-1])
        ones = np.ones(len(indices), np.float32)
        return csr_matrix((ones, indices, indptr), shape=(len(labels), len(self)))

    def texts(self, by_name: Mapping[str, str]) -> list[str]:
        """Return the text of each label, empty where there is none."""
        return [by_name.get(name, "") for name in self.names]

    def with_new(self, names: Iterable[str]) -> "LabelNames":
        """Return these names and new ones after them."""
        return LabelNames([*self.names, *names], self.removed)

    def with_unknown(self, labels: Iterable[Iterable[str]]) -> "LabelNames":
        """Return these names and, after them, those of some samples that are not there yet."""
        return self.with_new(sorted(set(chain.from_iterable(labels)) - self.ids.keys()))

    def without(self, names: Iterable[str]) -> "LabelNames":
        """Return these names without some, whose ids stay empty."""
        return LabelNames(self.names, sorted({*self.removed, *map(self.id_of, names)}))

    def _unknown(self, name: str) -> LabelsError:
        close = get_close_matches(name, self.ids, n=1) if len(self) < _MOST_COMPARED else []
        some = next(iter(self.ids), None)
        hint = f"; did you mean {close[0]!r:.60}?" if close else f", such as {some!r:.60}"
        return LabelsError(f"{name!r:.60} is not among the {len(self.ids):,} labels{hint}")
