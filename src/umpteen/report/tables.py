"""The tables of a report, in colour for a terminal or as plain text."""

from io import StringIO
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from umpteen.metrics.frequency import LabelGroup
from umpteen.metrics.reliability import Reliability

if TYPE_CHECKING:
    from umpteen.report.report import Report

_PAIRS_SHOWN = 3


def render(report: "Report") -> Group:
    """Return the headline, metrics, then groups, probabilities and confusions if there are any."""
    lines: list[Any] = [headline(report), _metrics(report)]
    if report.bands:
        lines.append(_groups(report))
    if report.reliability is not None:
        lines.append(calibration(report, report.reliability))
    if report.confused:
        lines.append(Text(confusions(report)))
    return Group(*lines)


def as_text(report: "Report") -> str:
    """Return the same without colours, whatever the terminal."""
    console = Console(file=StringIO(), width=96, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(render(report))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def headline(report: "Report") -> str:
    """Return what was tested."""
    lines = [f"{report.n_samples:,} samples, {report.n_labels:,} labels"]
    if report.n_samples_without_labels:
        lines.append(f"samples without labels: {report.n_samples_without_labels:,}")
    if report.n_unseen_labels:
        lines.append(f"test labels unseen in training: {report.n_unseen_labels:,}")
    return "; ".join(lines)


def calibration(report: "Report", reliability: Reliability) -> str:
    """Return by how much probabilities are off, and what the highest threshold gives."""
    off = 100 * reliability.expected_calibration_error
    line = f"calibration error (ECE): {off:.1f} points"
    if not report.thresholds:
        return line
    at = report.thresholds[-1]
    if at.labels_per_sample == 0:
        return f"{line}; no answer has {at.threshold:g} or more"
    return (
        f"{line}; from {at.threshold:g} upwards {100 * at.precision:.1f} % right, "
        f"{at.labels_per_sample:.3g} labels per sample"
    )


def confusions(report: "Report") -> str:
    """Return the labels that are given most often in place of others."""
    pairs = [
        f"{pair.given} instead of {pair.missed} ({pair.count:,}x)"
        for pair in report.confused[:_PAIRS_SHOWN]
    ]
    return "most confused: " + "; ".join(pairs)


def _metrics(report: "Report") -> Table:
    table = _table("in %", *(f"@{k}" for k in report.ks))
    for name in report.metric_names:
        table.add_row(name, *(_percent(report.metrics[f"{name}@{k}"]) for k in report.ks))
    return table


def _groups(report: "Report") -> Table:
    k = max(report.ks)
    headings = ["labels", "in training", "% of test", f"recall@{k}, %", f"part of P@{k}, %"]
    if report.bands[0].psp is not None:
        headings.append(f"of PSP@{k}, %")
    table = _table("group", *headings)
    for groups in (report.bands, report.deciles):
        for group in groups:
            table.add_row(*_cells(group))
        table.add_section()
    return table


def _cells(group: LabelGroup) -> list[str]:
    values = [group.test_share, group.recall, group.precision]
    values += [] if group.psp is None else [group.psp]
    return [group.name, f"{group.n_labels:,}", group.span, *map(_percent, values)]


def _table(first: str, *others: str) -> Table:
    table = Table(header_style="bold")
    table.add_column(first)
    for name in others:
        # Else a narrow terminal cuts a heading: "recall@..." may be of any k.
        table.add_column(name, justify="right", min_width=max(map(len, name.split())))
    return table


def _percent(value: float) -> str:
    return f"{100 * value:.2f}"
