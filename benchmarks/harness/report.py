"""The table on the screen, the JSON file, and the Markdown table made from it."""

import json
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

Row = dict[str, Any]  # a system on a data set: name, group, whether a peer, and its repeats


class Column(NamedTuple):
    """One figure of the table."""

    key: str
    heading: str
    digits: int
    more_is_better: bool = False

    @property
    def ratio_digits(self) -> int:
        return 3 if self.more_is_better else 2


COLUMNS = [
    Column("train_cpu", "train CPU s", 1),
    Column("train_wall", "train wall s", 1),
    Column("batch", "all thr. µs/row", 0),
    Column("batch_one", "1 thr. µs/row", 0),
    Column("p50", "p50 ms", 2),
    Column("p99", "p99 ms", 2),
    Column("train_peak", "train MB", 0),
    Column("predict_peak", "pred. MB", 0),
    Column("size", "model MB", 1),
    Column("first", "first s", 2),
    Column("cold", "cold s", 1),
    *(Column(f"P@{k}", f"P@{k}", 2, True) for k in (1, 3, 5)),
    *(Column(f"PSP@{k}", f"PSP@{k}", 2, True) for k in (1, 3, 5)),
]


def figures(row: Row) -> dict[str, float]:
    """The median of each figure over the repeats that finished."""
    repeats = row["repeats"]
    return {key: median(repeat[key] for repeat in repeats) for key in (repeats or [{}])[0]}


def ratios(row: Row, rows: list[Row]) -> dict[str, float]:
    """Each figure over the best among the peers of the same group."""
    peers = [figures(other) for other in rows if other["peer"] and other["group"] == row["group"]]
    own, result = figures(row), {}
    for column in COLUMNS:
        known = [peer[column.key] for peer in peers if column.key in peer]
        best = (max if column.more_is_better else min)(known, default=0)
        if best and column.key in own:
            result[column.key] = own[column.key] / best
    return result


def print_table(name: str, rows: list[Row]) -> None:
    """One data set; below each figure its ratio to the best peer's of the same group."""
    table = Table(title=name, caption="below each figure: its ratio to the best peer's", padding=0)
    table.add_column("system", min_width=12)
    for column in COLUMNS:
        table.add_column(column.heading, justify="right")
    for group in dict.fromkeys(row["group"] for row in rows):
        table.add_section()
        table.add_row(f"[bold]{group}")
        for row in (row for row in rows if row["group"] == group):
            table.add_row(row["system"], *_cells(row, rows))
    console = Console()
    console.width = max(console.width, 170)
    console.print(table)
    for row in rows:
        if row["failed"]:
            console.print(f"{row['system']} failed: {row['failed']}", markup=False)


def _cells(row: Row, rows: list[Row]) -> list[str]:
    if not row["repeats"]:
        return ["failed"]
    own, relative = figures(row), ratios(row, rows)
    return [_cell(column, own, relative, row["peer"]) for column in COLUMNS]


def _cell(column: Column, own: dict[str, float], relative: dict[str, float], peer: bool) -> str:
    if column.key not in own:
        return ""
    value = f"{own[column.key]:,.{column.digits}f}"
    if column.key not in relative:
        return value
    ratio = relative[column.key]
    ahead = ratio >= 1 if column.more_is_better else ratio <= 1
    colour = "dim" if peer else "green" if ahead else "red"
    return f"{value}\n[{colour}]{ratio:.{column.ratio_digits}f}[/]"


def write(results: dict[str, Any], path: Path) -> None:
    """The results as JSON at `path`, and as tables beside it."""
    write_results(results, path, markdown(results))


def write_results(results: dict[str, Any], path: Path, text: str) -> None:
    """`path` gets the results as JSON; the same name with `.md` gets `text`."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    path.with_suffix(".md").write_text(text)


def markdown(results: dict[str, Any]) -> str:
    """One table per data set, with each ratio to the best peer in brackets."""
    machine = results["machine"]
    parts = [
        f"Made by `{results['command']}` on {machine['cores']} cores of {machine['cpu']}; medians "
        f"of {results['repeats']} runs, in brackets the ratio to the best peer of the same group."
    ]
    for name in dict.fromkeys(row["set"] for row in results["rows"]):
        parts.append(_markdown_table(name, [r for r in results["rows"] if r["set"] == name]))
    return "\n\n".join(parts) + "\n"


def _markdown_table(name: str, rows: list[Row]) -> str:
    lines = [["system", "group", *(column.heading for column in COLUMNS)]]
    for row in rows:
        own, relative = figures(row), ratios(row, rows)
        cells = [_markdown_cell(column, own, relative) for column in COLUMNS]
        if row["failed"]:
            cells[0] = f"{cells[0]} failed: {row['failed']}".strip()
        lines.append([row["system"], row["group"], *cells])
    return f"### {name}\n\n{table_lines(lines)}"


def table_lines(rows: list[list[str]]) -> str:
    """A Markdown table whose first row is the headings."""
    heads, *body = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *body))


def _markdown_cell(column: Column, own: dict[str, float], relative: dict[str, float]) -> str:
    if column.key not in own:
        return ""
    value = f"{own[column.key]:,.{column.digits}f}"
    if column.key not in relative:
        return value
    return f"{value} ({relative[column.key]:.{column.ratio_digits}f})"
