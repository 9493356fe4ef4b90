"""What a tagger remembers of the groups that it learned from."""

from dataclasses import dataclass
from typing import Annotated

from umpteen.storage import Within, storable


@storable
@dataclass(frozen=True)
class LearnedGroups:
    """What a tagger learned from groups, and how it understood their labels.

    `samples_per_label` is "count" if labels were repeated, "estimate" if it was only known that
    they occur, "one" if each belonged to one text; `chosen` and `agreement` are those of `Eagle`.
    """

    n_groups: Annotated[int, Within(1, 2**62)]
    largest: Annotated[int, Within(1, 2**62)]
    samples_per_label: str
    chosen: str
    agreement: list[float]

    @property
    def is_exact(self) -> bool:
        """Whether a label belongs to as many texts of a group as its list says."""
        return self.samples_per_label != "estimate"

    def __str__(self) -> str:
        labels = {
            "count": "how many texts have each label",
            "one": "which labels occur, each in one text",
        }.get(self.samples_per_label, "which labels occur")
        size = "1 text" if self.largest == 1 else f"at most {self.largest:,} texts"
        groups = "1 group" if self.n_groups == 1 else f"{self.n_groups:,} groups"
        return f"{groups} of {size}; known: {labels}"
