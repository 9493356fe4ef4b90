"""The claims of a paper as one page: no script, no network, no other file."""

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING

from papers.contents import Block, Cell, Figure, Measured, Table, Value
from umpteen import __version__

if TYPE_CHECKING:
    from papers.frame import Reproduction

_PAGE = """<!doctype html>
<html lang="en"><head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
img-src data:">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 1rem }}
table {{ border-collapse: collapse; display: block; margin: 1.5rem 0; overflow-x: auto }}
caption, figcaption {{ color: gray; padding: .3rem 0; text-align: left }}
th, td {{ border-bottom: 1px solid #8884; padding: .3rem .7rem; text-align: right }}
th:first-child {{ text-align: left }}
small {{ color: gray; display: block }}
nav a {{ display: block }}
figure {{ margin: 1.5rem 0 }}
img {{ background: white; max-width: 100% }}
</style>
</head><body><main>
<header><h1>{title}</h1>
<p>The claims of {paper}, measured again.</p>
<p>{facts}</p></header>
<nav aria-label="Contents">{links}</nav>
{sections}
</main></body></html>
"""


def render(reproduction: "Reproduction") -> str:
    """Return the whole page, as far as it is measured."""
    measured = reproduction.measured
    size = "quick: small, to see that it runs" if reproduction.quick else "full size"
    return _PAGE.format(
        title=escape(reproduction.title),
        paper=escape(reproduction.paper),
        facts=f"{len(measured)} of {len(reproduction.sections)} sections; {size}; "
        f"umpteen {__version__}",
        links="".join(
            f'<a href="#section-{i}">{escape(each.section.title)}</a>'
            for i, each in enumerate(measured)
        ),
        sections="\n".join(_section(i, each) for i, each in enumerate(measured)),
    )


def _section(place: int, measured: Measured) -> str:
    section = measured.section
    return (
        f'<section><h2 id="section-{place}">{escape(section.title)}</h2>'
        f"<p><b>The paper: </b>{escape(section.claim)}</p>"
        f"<p><b>Here: </b>{escape(section.data)}</p>"
        f"{''.join(map(_shown, measured.blocks))}"
        f"<p>Measured in {measured.seconds:.1f} s.</p></section>"
    )


def _shown(block: Block) -> str:
    if isinstance(block, Table):
        return _table(block)
    return _picture(block) if isinstance(block, Figure) else f"<p>{escape(block)}</p>"


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    rows = "".join(
        f'<tr><th scope="row">{_cell(first)}</th>'
        + "".join(f"<td>{_cell(cell)}</td>" for cell in others)
        + "</tr>"
        for first, *others in table.rows
    )
    caption = f"<caption>{escape(table.caption)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(cell: Cell) -> str:
    if isinstance(cell, Value):
        return cell.measured + (f"<small>{cell.printed}</small>" if cell.printed else "")
    return escape("-" if cell is None else str(cell))


def _picture(figure: Figure) -> str:
    # As an image of its own: names inside of one picture cannot clash with those of another.
    source = "data:image/svg+xml;base64," + b64encode(figure.svg.encode()).decode()
    image = f'<img src="{source}" alt="{escape(figure.says)}">'
    return f"<figure><figcaption>{escape(figure.caption)}</figcaption>{image}</figure>"
