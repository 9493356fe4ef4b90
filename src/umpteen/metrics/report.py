"""All metrics at once, as a table, a dictionary or a picture."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from html import escape
from io import StringIO
from os import PathLike
from typing import Any

import numpy as np
from rich.console import Console, Group
from rich.table import Table

from umpteen.base import TopK
from umpteen.errors import LabelsError
from umpteen.metrics import figure, frequency, macro, ranking
from umpteen.metrics.frequency import LabelGroup
from umpteen.metrics.hits import Hits, judge
from umpteen.metrics.inputs import check_ks, check_pair
from umpteen.metrics.propensity import Scored, psndcg, psp
from umpteen.metrics.propensity import propensity as propensity_of

_PER_SAMPLE = {
    "precision": ranking.precision,
    "nDCG": ranking.ndcg,
    "recall": ranking.recall,
    "F1": ranking.f1,
}
_SCORED = {"PSP": psp, "PSnDCG": psndcg}
_PER_LABEL = {
    "macro precision": macro.macro_precision,
    "macro recall": macro.macro_recall,
    "macro F1": macro.macro_f1_of_hits,
    "coverage": ranking.coverage,
}


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """How good answers are; `print` it, or see `metrics`, `to_dict` and `plot`.

    `metrics` has a name for each number, such as `"precision@1"`, `"nDCG@5"`, `"PSP@3"`.
    `bands` (head, torso, tail) and `deciles` group labels by their training frequency.
    """

    ks: tuple[int, ...]
    metrics: dict[str, float]
    n_samples: int
    n_labels: int
    n_samples_without_labels: int
    n_unseen_labels: int | None = None
    bands: list[LabelGroup] = field(default_factory=list)
    deciles: list[LabelGroup] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain types, ready for JSON."""
        return {**asdict(self), "ks": list(self.ks)}

    def plot(self, path: str | PathLike[str]) -> None:
        """Save a picture of the report; the suffix (.png, .svg, .pdf) chooses the format."""
        figure.save(self, path)

    def __rich__(self) -> Group:
        parts: list[Any] = [self._headline(), self._metrics_table()]
        if self.bands:
            parts.append(self._groups_table())
        return Group(*parts)

    def __str__(self) -> str:
        console = Console(file=StringIO(), width=96, color_system=None, force_terminal=False)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def __repr__(self) -> str:
        first = ", ".join(f"{name}={value:.4f}" for name, value in list(self.metrics.items())[:3])
        return f"Report(n_samples={self.n_samples}, n_labels={self.n_labels}, {first}, ...)"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _headline(self) -> str:
        parts = [f"{self.n_samples:,} samples, {self.n_labels:,} labels"]
        if self.n_samples_without_labels:
            parts.append(f"samples without labels: {self.n_samples_without_labels:,}")
        if self.n_unseen_labels:
            parts.append(f"test labels unseen in training: {self.n_unseen_labels:,}")
        return "; ".join(parts)

    def _metrics_table(self) -> Table:
        table = _table("in %", *(f"@{k}" for k in self.ks))
        for name in dict.fromkeys(key.rpartition("@")[0] for key in self.metrics):
            table.add_row(name, *(_percent(self.metrics[f"{name}@{k}"]) for k in self.ks))
        return table

    def _groups_table(self) -> Table:
        k = max(self.ks)
        table = _table(
            *("group", "labels", "in training", "% of test", f"recall@{k}", f"part of P@{k}"),
        )
        for groups in (self.bands, self.deciles):
            for group in groups:
                table.add_row(*_cells(group))
            table.add_section()
        return table


def evaluate(
    top: Any,
    Y_test: Any,
    Y_train: Any = None,
    *,
    ks: Iterable[int] = (1, 3, 5),
    a: float = 0.55,
    b: float = 1.5,
    propensity: Any = None,
) -> Report:
    """Everything about the answers `top` to samples whose labels are `Y_test`.

    With `Y_train`, also the metrics scored by propensity (`a` and `b` are its constants, see
    `propensity`; or give the propensities themselves) and labels grouped by their frequency.

    >>> top = TopK(labels=[[0, 1], [2, 0]], scores=[[0.9, 0.5], [0.8, 0.1]])
    >>> report = evaluate(top, [[0], [1, 2]], [[0], [0], [0, 1], [2]], ks=(1, 2))
    >>> round(report.metrics["recall@2"], 4), round(report.metrics["PSP@2"], 4)
    (0.75, 0.6579)
    """
    if isinstance(Y_test, TopK):
        raise LabelsError("Y_test is a TopK: evaluate takes (top, Y_test, Y_train)")
    ks = check_ks(ks)
    counts = None
    if Y_train is not None:
        Y_test, Y_train = check_pair(Y_test, Y_train, ("Y_test", "Y_train"))
        counts = np.bincount(Y_train.indices, minlength=Y_train.shape[1])
        propensity = propensity_of(Y_train, a, b) if propensity is None else propensity
    hits = judge(Y_test, top, ks, np.size(propensity))
    return _report(hits, tuple(ks), propensity, counts)


def _report(hits: Hits, ks: tuple[int, ...], propensity: Any, counts: Any) -> Report:
    metrics = {f"{name}@{k}": of(hits, k) for name, of in _PER_SAMPLE.items() for k in ks}
    if propensity is not None:
        scored = Scored.of(hits, propensity)
        metrics |= {f"{name}@{k}": of(scored, k) for name, of in _SCORED.items() for k in ks}
    metrics |= {f"{name}@{k}": of(hits, k) for name, of in _PER_LABEL.items() for k in ks}
    report = Report(
        ks=ks,
        metrics=metrics,
        n_samples=len(hits),
        n_labels=hits.relevant.shape[1],
        n_samples_without_labels=len(hits) - hits.n_labelled,
    )
    return report if counts is None else _with_groups(report, hits, counts)


def _with_groups(report: Report, hits: Hits, counts: Any) -> Report:
    unseen = np.count_nonzero((counts == 0) & (hits.relevant_per_label > 0))
    return replace(
        report,
        n_unseen_labels=int(unseen),
        bands=frequency.bands(hits, counts, max(report.ks)),
        deciles=frequency.deciles(hits, counts, max(report.ks)),
    )


def _table(first: str, *others: str) -> Table:
    table = Table(header_style="bold")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _cells(group: LabelGroup) -> list[str]:
    values = (group.test_share, group.recall, group.precision)
    return [group.name, f"{group.n_labels:,}", group.span, *map(_percent, values)]


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"
