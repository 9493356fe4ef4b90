"""The beginning of the page: what was tested, how good it is, for which labels."""

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from umpteen.markup import Html, join, noted, percent, table, tag
from umpteen.report import charts, tables

if TYPE_CHECKING:
    from umpteen.report.report import Report

_MEANINGS = {
    "precision": "of the first k answers, the share that is right",
    "nDCG": "how right the order is: right answers count more at the front",
    "recall": "of a sample's own labels, the share among the first k answers",
    "F1": "precision and recall of a sample in one number",
    "PSP": "precision where rare labels count more, against the best possible",
    "PSnDCG": "nDCG where rare labels count more, against the best possible",
    "macro precision": "precision of each label, averaged over labels",
    "macro recall": "recall of each label, averaged over labels",
    "macro F1": "F1 of each label, averaged over labels",
    "coverage": "of the labels in the test, the share found at least once",
}


def header(report: "Report", title: str) -> Html:
    """Return title, what was tested, facts of the model, and the numbers to remember."""
    facts = [
        tag("div", tag("dt", key), tag("dd", _fact(value))) for key, value in report.facts.items()
    ]
    tested = tag("p", "Tested on ", tables.headline(report), ".", class_="lead")
    listed = tag("dl", *facts, class_="facts") if facts else ""
    return tag("header", tag("h1", title), tested, listed, _tiles(report))


def metrics(report: "Report") -> Html:
    """Return every metric at every k."""
    rows = [
        [noted(metric, _MEANINGS.get(metric, ""))]
        + [percent(report.metrics[f"{metric}@{k}"], 2) for k in report.ks]
        for metric in report.metric_names
    ]
    return table(
        "In percent, at the first k answers", ["metric", *(f"@{k}" for k in report.ks)], rows
    )


def frequency(report: "Report") -> Html:
    """Return labels by how often training had them."""
    if not report.deciles:
        return Html()
    k = max(report.ks)
    names = [group.span for group in report.deciles]
    found = [group.recall for group in report.deciles]
    shares = [group.precision for group in report.deciles]
    scored = [group.psp for group in report.deciles if group.psp is not None]
    pictures = [
        charts.bars(f"Share found (recall@{k}), %", names, found, full=1.0),
        charts.bars(f"What they add to precision@{k}, %", names, shares, full=max(shares)),
    ]
    if scored:
        pictures.append(charts.bars(f"What they add to PSP@{k}, %", names, scored, max(scored)))
    explained = (
        "Ten groups of equally many labels, the most frequent first. Each row is named by how "
        "many training samples its labels have."
    )
    return join(tag("p", explained), tag("div", *pictures, class_="charts"), _bands(report))


def _tiles(report: "Report") -> Html:
    first, last = min(report.ks), max(report.ks)
    chosen = [f"precision@{first}", f"recall@{last}", f"PSP@{last}", f"coverage@{last}"]
    numbers = [
        (key, percent(report.metrics[key]) + " %") for key in chosen if key in report.metrics
    ]
    if report.reliability is not None:
        off = percent(report.reliability.expected_calibration_error)
        numbers.append(("calibration error", f"{off} %"))
    tiles = [tag("li", tag("b", value), tag("span", key)) for key, value in numbers]
    return tag("ul", *tiles, class_="tiles")


def _bands(report: "Report") -> Html:
    rows = [
        [
            noted(group.name, f"training samples per label: {group.span}"),
            f"{group.n_labels:,}",
            percent(group.test_share),
            percent(group.recall),
        ]
        for group in report.bands
    ]
    return table(
        "The head holds half of all training occurrences, with the torso 80 %; the rest is tail",
        ["group", "labels", "% of test", "found, %"],
        rows,
    )


def _fact(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    return f"{value:,}" if isinstance(value, Integral) else f"{float(value):,.4g}"
