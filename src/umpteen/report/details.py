"""The details of the page; a section is empty if there is nothing to show."""

from typing import TYPE_CHECKING, Any

from umpteen.markup import Html, join, name, noted, percent, table, tag
from umpteen.metrics.per_label import FEWEST_TEST_SAMPLES, LabelQuality
from umpteen.metrics.reliability import Reliability
from umpteen.report import charts

if TYPE_CHECKING:
    from umpteen.report.report import Report

_LABELS_SHOWN = 8
_NONE = "-"


def calibration(report: "Report") -> Html:
    """Return the section that compares probabilities with the share of right answers."""
    if report.reliability is None:
        return Html()
    error = percent(report.reliability.expected_calibration_error)
    said = tag(
        "p",
        "Bars show how many answers of a probability are right; on the dashed line, probabilities "
        "say exactly that. On average they are off by ",
        tag("strong", f"{error} points"),
        f" (expected calibration error, ECE). Pale bars have fewer than {charts.FEW} answers.",
    )
    numbers = table(
        "Answers by probability",
        ["from, to", "answers", "mean", "right, %"],
        _bins(report.reliability),
    )
    right = tag(
        "div", _thresholds(report), tag("details", tag("summary", "The bars in numbers"), numbers)
    )
    diagram = tag("figure", charts.reliability_diagram(report.reliability))
    return join(said, tag("div", diagram, right, class_="halves"))


def confused(report: "Report") -> Html:
    """Return pairs of labels that are confused with one another."""
    if not report.confused:
        return Html()
    rows = [
        [
            noted(name(pair.given), join("instead of ", name(pair.missed))),
            f"{pair.count:,}",
            percent(pair.share, 0),
        ]
        for pair in report.confused
    ]
    explained = (
        "Wrong answers, and labels missed in their place. The last column says how many of all "
        "the misses of that label come with this answer."
    )
    headings = ["answered", "samples", "% of misses"]
    return join(tag("p", explained), table("The most frequent pairs", headings, rows))


def labels(report: "Report") -> Html:
    """Return the labels with the best and the worst quality."""
    if report.labels is None:
        return Html()
    best = report.labels.best(_LABELS_SHOWN)
    worst = [label for label in report.labels.worst(_LABELS_SHOWN) if label not in best]
    note = f"Labels with {FEWEST_TEST_SAMPLES} or more test samples, by F1 among the first "
    note += f"{report.labels.k} answers."
    if not best:
        return tag("p", f"No label has {FEWEST_TEST_SAMPLES} test samples or more.")
    tables = [_label_table("Best", best), _label_table("Worst", worst) if worst else ""]
    return join(tag("p", note), tag("div", *tables, class_="halves"))


def _bins(reliability: Reliability) -> list[list[Any]]:
    return [
        [
            f"{group.low:.1f} to {group.high:.1f}",
            f"{group.count:,}",
            f"{group.mean_probability:.3f}" if group.count else _NONE,
            percent(group.share_right) if group.count else _NONE,
        ]
        for group in reliability.bins
    ]


def _thresholds(report: "Report") -> Html:
    rows = [
        [
            f"{at.threshold:g}",
            percent(at.precision) if at.labels_per_sample else _NONE,
            percent(at.recall),
            f"{at.labels_per_sample:.3f}",
        ]
        for at in report.thresholds
    ]
    headings = ["from", "right, %", "found, %", "labels per sample"]
    return table("If only answers from a probability upwards are given", headings, rows)


def _label_table(caption: str, labels: list[LabelQuality]) -> Html:
    rows = [
        [noted(name(label.label), _samples(label))]
        + [percent(value, 0) for value in (label.precision, label.recall, label.f1)]
        for label in labels
    ]
    return table(caption, ["label", "precision", "recall", "F1"], rows)


def _samples(label: LabelQuality) -> str:
    test = f"{label.n_test:,} test"
    return test if label.n_train is None else f"{label.n_train:,} training, {test}"
