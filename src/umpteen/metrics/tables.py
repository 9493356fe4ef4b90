"""The tables of a report, in colour for a terminal or as plain text."""

from io import StringIO
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.table import Table

from umpteen.metrics.frequency import LabelGroup

if TYPE_CHECKING:
    from umpteen.metrics.report import Report


def render(report: "Report") -> Group:
    """Headline, metrics, and label groups where training labels were given."""
    parts: list[Any] = [_headline(report), _metrics(report)]
    if report.bands:
        parts.append(_groups(report))
    return Group(*parts)


def as_text(report: "Report") -> str:
    """The same without colours, whatever the terminal."""
    console = Console(file=StringIO(), width=96, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(render(report))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _headline(report: "Report") -> str:
    parts = [f"{report.n_samples:,} samples, {report.n_labels:,} labels"]
    if report.n_samples_without_labels:
        parts.append(f"samples without labels: {report.n_samples_without_labels:,}")
    if report.n_unseen_labels:
        parts.append(f"test labels unseen in training: {report.n_unseen_labels:,}")
    return "; ".join(parts)


def _metrics(report: "Report") -> Table:
    table = _table("in %", *(f"@{k}" for k in report.ks))
    for name in report.metric_names:
        table.add_row(name, *(_percent(report.metrics[f"{name}@{k}"]) for k in report.ks))
    return table


def _groups(report: "Report") -> Table:
    k = max(report.ks)
    headings = ("labels", "in training", "% of test", f"recall@{k}, %", f"part of P@{k}, %")
    table = _table("group", *headings)
    for groups in (report.bands, report.deciles):
        for group in groups:
            table.add_row(*_cells(group))
        table.add_section()
    return table


def _cells(group: LabelGroup) -> list[str]:
    values = (group.test_share, group.recall, group.precision)
    return [group.name, f"{group.n_labels:,}", group.span, *map(_percent, values)]


def _table(first: str, *others: str) -> Table:
    table = Table(header_style="bold")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"
