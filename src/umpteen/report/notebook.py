"""The report as a notebook shows it: its tables, without pictures and examples."""

from typing import TYPE_CHECKING

from umpteen.markup import Html, notebook, percent, table, tag
from umpteen.report import tables

if TYPE_CHECKING:
    from umpteen.report.report import Report


def render(report: "Report") -> Html:
    """Return the title, what was tested, metrics, groups of labels, and probabilities."""
    pieces = [tag("b", report.title), tag("p", tables.headline(report)), _metrics(report)]
    if report.bands:
        pieces.append(_bands(report))
    if report.reliability is not None:
        pieces.append(tag("p", tables.calibration(report, report.reliability)))
    if report.confused:
        pieces.append(tag("p", tables.confusions(report)))
    return notebook(*pieces)


def _metrics(report: "Report") -> Html:
    rows = [
        [name, *(percent(report.metrics[f"{name}@{k}"], 2) for k in report.ks)]
        for name in report.metric_names
    ]
    return table("In percent, at the first k answers", ["", *(f"@{k}" for k in report.ks)], rows)


def _bands(report: "Report") -> Html:
    rows = [
        [band.name, f"{band.n_labels:,}", band.span, percent(band.test_share), percent(band.recall)]
        for band in report.bands
    ]
    headings = ["labels", "how many", "in training", "% of test", f"recall@{max(report.ks)}, %"]
    return table("Frequent and rare labels", headings, rows)
