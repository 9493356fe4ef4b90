"""The report as one page: no script, no network, no other file."""

from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING

from umpteen.markup import Html, join, tag
from umpteen.report import answers, details, overview

if TYPE_CHECKING:
    from umpteen.report.report import Report

_SECTIONS = {
    "Metrics": overview.metrics,
    "Frequent and rare labels": overview.frequency,
    "Probabilities": details.calibration,
    "Confused labels": details.confused,
    "Best and worst labels": details.labels,
    "Examples": answers.examples,
}
# Even if something slipped through the escaping, nothing may run or be fetched.
_HEAD = """\
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
"""


def render(report: "Report") -> str:
    """Return the whole page."""
    title = report.title or "Report"
    made = {heading: make(report) for heading, make in _SECTIONS.items()}
    made = {heading: content for heading, content in made.items() if content}
    sections = [section(heading, content) for heading, content in made.items()]
    return document(title, overview.header(report, title), contents(made), *sections)


def document(title: str, *content: Html) -> str:
    """Return a page of any content."""
    style = Html(files("umpteen.report").joinpath("style.css").read_text("utf-8"))
    head = Html(_HEAD)
    written = tag("head", head, tag("title", title), "\n", tag("style", style))
    html = tag("html", written, "\n", tag("body", tag("main", *content)), lang="en")
    return f"<!doctype html>\n{html}\n"


def contents(headings: Iterable[str]) -> Html:
    """Return links to the sections."""
    links = [tag("a", heading, href=f"#{_anchor(heading)}") for heading in headings]
    return tag("nav", *links, aria_label="Contents")


def section(heading: str, content: Html) -> Html:
    """Return a part of the page under its heading."""
    anchor = _anchor(heading)
    titled = tag("h2", heading, id=anchor)
    return join("\n", tag("section", titled, content, aria_labelledby=anchor))


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")
