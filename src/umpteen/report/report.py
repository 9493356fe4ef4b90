"""All metrics at once, as a table, a dictionary, a picture or a page."""

from dataclasses import dataclass, field, fields, is_dataclass
from os import PathLike
from typing import Any

import numpy as np
from rich.console import Group

from umpteen.metrics.confusion import Confused
from umpteen.metrics.frequency import LabelGroup
from umpteen.metrics.per_label import LabelTable
from umpteen.metrics.reliability import AtThreshold, Reliability
from umpteen.report import figure, notebook, page, tables
from umpteen.writing import open_to_write


@dataclass(frozen=True)
class Example:
    """One sample: what it says, its labels, the answers with their scores, and the reasons.

    `words` has words of the text with their contributions to the first answer; a word may also be
    a bigram.
    """

    text: str
    expected: list[str]
    answered: list[tuple[str, float]]
    words: list[tuple[str, float]] = field(default_factory=list)


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """The quality of answers; `print` it, or see `metrics`, `to_dict`, `to_html` and `plot`.

    `metrics` maps names such as `"precision@1"`, `"nDCG@5"` and `"PSP@3"` to values.
    `bands` (head, torso, tail) and `deciles` group labels by their training frequency.
    What was not requested or cannot be computed is None or empty. `facts` has information about the
    model for the reader: names with numbers or texts.
    """

    ks: tuple[int, ...]
    metrics: dict[str, float]
    n_samples: int
    n_labels: int
    n_samples_without_labels: int
    n_unseen_labels: int | None = None
    bands: list[LabelGroup] = field(default_factory=list)
    deciles: list[LabelGroup] = field(default_factory=list)
    reliability: Reliability | None = None
    thresholds: list[AtThreshold] = field(default_factory=list)
    confused: list[Confused] = field(default_factory=list)
    labels: LabelTable | None = None
    examples: list[Example] = field(default_factory=list)
    title: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def metric_names(self) -> list[str]:
        """The metrics without their k, in the order of the table."""
        return list(dict.fromkeys(key.rpartition("@")[0] for key in self.metrics))

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain types, ready for JSON."""
        plain: dict[str, Any] = _plain(self)
        return plain

    def to_html(self, path: str | PathLike[str] | None = None) -> str:
        """Return the report as one page that needs nothing else; `path` writes it, too."""
        html = page.render(self)
        if path is not None:
            with open_to_write(path) as file:
                file.write(html.encode())
        return html

    def plot(self, path: str | PathLike[str]) -> None:
        """Save a picture of the report; the suffix (.png, .svg, .pdf) chooses the format."""
        figure.save(self, path)

    def __rich__(self) -> Group:
        return tables.render(self)

    def __str__(self) -> str:
        return tables.as_text(self)

    def __repr__(self) -> str:
        first = ", ".join(f"{name}={value:.4f}" for name, value in list(self.metrics.items())[:3])
        return f"Report(n_samples={self.n_samples}, n_labels={self.n_labels}, {first}, ...)"

    def _repr_html_(self) -> str:
        return notebook.render(self)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
