"""The report as one page: no script, no network, nothing beside it."""

from importlib.resources import files
from typing import TYPE_CHECKING

from umpteen.report import answers, details, overview
from umpteen.report.markup import Html, join, tag

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
    """The whole page."""
    title = report.title or "Report"
    made = {heading: make(report) for heading, make in _SECTIONS.items()}
    made = {heading: section for heading, section in made.items() if section}
    body = tag(
        "main", overview.header(report, title), _contents(made), *map(_section, made.items())
    )
    style = Html(files("umpteen.report").joinpath("style.css").read_text("utf-8"))
    head = tag("head", Html(_HEAD), tag("title", title), "\n", tag("style", style))
    html = tag("html", head, "\n", tag("body", body), lang="en")
    return f"<!doctype html>\n{html}\n"


def _contents(made: dict[str, Html]) -> Html:
    links = [tag("a", heading, href=f"#{_anchor(heading)}") for heading in made]
    return tag("nav", *links, aria_label="Contents")


def _section(item: tuple[str, Html]) -> Html:
    heading, content = item
    anchor = _anchor(heading)
    return join(
        "\n", tag("section", tag("h2", heading, id=anchor), content, aria_labelledby=anchor)
    )


def _anchor(heading: str) -> str:
    return heading.lower().replace(" ", "-")
