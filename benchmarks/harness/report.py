"""The table on the screen, the JSON file, and the Markdown table made from it."""

import json
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from harness.systems import SINGLE, WIDE

Row = dict[str, Any]  # a system on a data set: name, group, whether a peer, and its repeats


class Column(NamedTuple):
    """One figure of the table."""

    key: str
    heading: str
    digits: int
    more_is_better: bool = False

    def show(self, found: dict[str, float]) -> str:
        return f"{found[self.key]:,.{self.digits}f}" if self.key in found else ""

    def show_ratio(self, found: dict[str, float]) -> str:
        digits = 3 if self.more_is_better else 2
        return f"{found[self.key]:,.{digits}f}" if self.key in found else ""

    def is_ahead(self, ratio: float) -> bool:
        return ratio >= 1 if self.more_is_better else ratio <= 1


COLUMNS = [
    Column("train_cpu", "train CPU s", 1),
    Column("train_wall", "train wall s", 1),
    Column("batch", "µs/row all threads", 1),
    Column("batch_one", "µs/row one thread", 1),
    Column("p50", "one row p50 ms", 3),
    Column("p99", "one row p99 ms", 3),
    Column("train_peak", "train peak MB", 0),
    Column("predict_peak", "predict peak MB", 0),
    Column("size", "model MB", 1),
    *(Column(f"P@{k}", f"P@{k}", 2, True) for k in (1, 3, 5)),
    *(Column(f"PSP@{k}", f"PSP@{k}", 2, True) for k in (1, 3, 5)),
]
STARTS = [Column("first", "first prediction s", 2), Column("cold", "nothing compiled s", 1)]
COMPARED = {SINGLE: "umpteen x1", WIDE: "umpteen x3"}  # the system that stands for us


def figures(row: Row) -> dict[str, float]:
    """The median of each figure over the repeats that have it."""
    found = {}
    for column in COLUMNS + STARTS:
        if known := [repeat[column.key] for repeat in row["repeats"] if column.key in repeat]:
            found[column.key] = median(known)
    return found


def ratios(row: Row, rows: list[Row]) -> dict[str, float]:
    """Each figure over the best among the peers of the same group, whichever peer that is."""
    peers = [figures(other) for other in rows if other["peer"] and other["group"] == row["group"]]
    own, result = figures(row), {}
    for column in COLUMNS:
        known = [peer[column.key] for peer in peers if column.key in peer]
        best = (max if column.more_is_better else min)(known, default=0)
        if best and column.key in own:
            result[column.key] = own[column.key] / best
    return result


def print_table(name: str, rows: list[Row]) -> None:
    """One data set: its systems, and below them how ours compare."""
    table = Table(title=name, padding=0)
    table.add_column("system", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column.heading, justify="right")
    for group in _groups(rows):
        table.add_section()
        for row in (row for row in rows if row["group"] == group):
            table.add_row(row["system"], *_cells(row))
        for own in _compared(rows, group):
            table.add_row(f"[bold]{own['system']} / best peer", *_coloured(ratios(own, rows)))
    console = Console()
    console.width = max(console.width, 160)
    console.print(table)
    for note in _notes(rows):
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    console.print()


def _groups(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["group"] for row in rows))


def _compared(rows: list[Row], group: str) -> list[Row]:
    """Our system of this group, where it has figures and a peer has some too."""
    ours = [row for row in rows if row["system"] == COMPARED[group]]
    return [row for row in ours if ratios(row, rows)]


def _cells(row: Row) -> list[str]:
    own = figures(row)
    cells = [column.show(own) for column in COLUMNS]
    if row["failed"] and "" in cells:
        cells[cells.index("")] = row["failed"] if _is_short(row["failed"]) else "failed"
    return cells


def _is_short(reason: str) -> bool:
    return reason.startswith("stopped")


def _notes(rows: list[Row]) -> list[str]:
    """What the table has no room for."""
    failed = [row for row in rows if row["failed"] and not _is_short(row["failed"])]
    reasons = [f"{row['system']} failed: {row['failed']}" for row in failed]
    return [note for note in (_starts(rows), *reasons) if note]


def _coloured(relative: dict[str, float]) -> list[str]:
    return [
        f"[{'green' if column.is_ahead(relative[column.key]) else 'red'}]"
        f"{column.show_ratio(relative)}[/]"
        if column.key in relative
        else ""
        for column in COLUMNS
    ]


def _starts(rows: list[Row]) -> str:
    """How long a fresh process takes to its first prediction."""
    warm, cold = STARTS
    told = []
    for row in rows:
        own = figures(row)
        if warm.key in own:
            uncompiled = f" ({cold.show(own)} s with nothing compiled)" if cold.key in own else ""
            told.append(f"{row['system']} {warm.show(own)} s{uncompiled}")
    return f"First prediction of a fresh process: {', '.join(told)}." if told else ""


def write(results: dict[str, Any], path: Path) -> None:
    """The results as JSON at `path`, and as tables beside it."""
    write_results(results, path, markdown(results))


def write_results(results: dict[str, Any], path: Path, text: str) -> None:
    """`path` gets the results as JSON; the same name with `.md` gets `text`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    path.with_suffix(".md").write_text(text)


def made_by(results: dict[str, Any]) -> str:
    """The sentence that says where figures come from."""
    machine = results["machine"]
    return f"Made by `{results['command']}` on {machine['cores']} cores of {machine['cpu']}."


def markdown(results: dict[str, Any]) -> str:
    """One table per data set."""
    runs = results["repeats"]
    parts = [
        "# LabelTree compared with PECOS, Omikuji and napkinXC",
        f"{made_by(results)} {f'Medians of {runs} trainings' if runs > 1 else 'One training'}, "
        "best of up to three predictions. A ratio is to the best peer of each column; under 1 is "
        "ahead in times and sizes, over 1 in accuracy.",
    ]
    for name in dict.fromkeys(row["set"] for row in results["rows"]):
        rows = [row for row in results["rows"] if row["set"] == name]
        parts += [f"## {name}", _markdown_table(rows), *_notes(rows)]
    return "\n\n".join(parts) + "\n"


def _markdown_table(rows: list[Row]) -> str:
    lines = [["system", *(column.heading for column in COLUMNS)]]
    for group in _groups(rows):
        lines += [[row["system"], *_cells(row)] for row in rows if row["group"] == group]
        for own in _compared(rows, group):
            relative = ratios(own, rows)
            cells = [column.show_ratio(relative) for column in COLUMNS]
            named = f"**{own['system']} / best {group} peer**"
            lines.append([named, *(cell and f"**{cell}**" for cell in cells)])
    return table_lines(lines)


def table_lines(rows: list[list[str]]) -> str:
    """A Markdown table whose first row is the headings."""
    heads, *body = rows
    rule = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, rule, *body))
