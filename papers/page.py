"""The claims of a paper as one page: no script, no network, nothing beside it."""

from base64 import b64encode
from typing import TYPE_CHECKING

from papers.contents import Cell, Figure, Measured, Part, Table, Value
from umpteen import __version__
from umpteen.report import markup
from umpteen.report.markup import Html, join, noted, tag
from umpteen.report.page import contents, document, section

if TYPE_CHECKING:
    from papers.frame import Reproduction


def render(reproduction: "Reproduction") -> str:
    """The whole page, as far as it is measured."""
    made = {
        measured.section.title: join(*_pieces(measured), _seconds(measured))
        for measured in reproduction.measured
    }
    sections = [section(heading, content) for heading, content in made.items()]
    return document(
        reproduction.title, _header(reproduction), contents(made), *sections, pictures=True
    )


def _header(reproduction: "Reproduction") -> Html:
    facts = {
        "measured": f"{len(reproduction.measured)} of {len(reproduction.sections)} sections",
        "size": "quick: small, to see that it runs" if reproduction.quick else "full",
        "umpteen": __version__,
    }
    listed = [tag("div", tag("dt", key), tag("dd", value)) for key, value in facts.items()]
    return tag(
        "header",
        tag("h1", reproduction.title),
        tag("p", "The claims of ", reproduction.paper, ", measured again.", class_="lead"),
        tag("dl", *listed, class_="facts"),
    )


def _pieces(measured: Measured) -> list[Html]:
    claim = tag("p", tag("b", "The paper: "), measured.section.claim)
    data = tag("p", tag("b", "Here: "), measured.section.data)
    return [claim, data, *map(_piece, measured.parts)]


def _seconds(measured: Measured) -> Html:
    return tag("p", f"Measured in {measured.seconds:.1f} s.", class_="lead")


def _piece(part: Part) -> Html:
    if isinstance(part, Table):
        rows = [[_cell(cell) for cell in row] for row in part.rows]
        return markup.table(part.caption, part.columns, rows)
    return _picture(part) if isinstance(part, Figure) else tag("p", part)


def _cell(cell: Cell) -> Html:
    if isinstance(cell, Value):
        return noted(cell.measured, cell.printed) if cell.printed else markup.escape(cell.measured)
    return markup.escape("-" if cell is None else cell)


def _picture(figure: Figure) -> Html:
    # As an image of its own: names inside of one picture cannot clash with those of another.
    source = "data:image/svg+xml;base64," + b64encode(figure.svg.encode()).decode()
    image = Html(f'<img src="{source}" alt="{markup.escape(figure.says)}">')
    return tag("figure", tag("figcaption", figure.caption), image)
