"""What was measured, for a terminal."""

from typing import Any

from rich.console import Group
from rich.table import Table as RichTable
from rich.text import Text

from papers.contents import Cell, Measured, Table


def render(measured: Measured) -> Group:
    """Claim, tables and remarks of a section; figures are for the page."""
    section = measured.section
    lines: list[Any] = [
        Text(section.title, style="bold"),
        Text(f"The paper: {section.claim}"),
        Text(f"Here: {section.data}"),
    ]
    for block in measured.blocks:
        if isinstance(block, Table):
            lines.append(_table(block))
        elif isinstance(block, str):
            lines.append(Text(block))
    return Group(*lines, "")


def _table(table: Table) -> RichTable:
    shown = RichTable(title=Text(table.caption), title_justify="left", title_style="italic")
    for i, heading in enumerate(table.columns):
        shown.add_column(Text(heading), justify="left" if i == 0 else "right")
    for row in table.rows:
        shown.add_row(*map(_cell, row))
    return shown


def _cell(cell: Cell) -> Text:
    return Text("-" if cell is None else str(cell))
