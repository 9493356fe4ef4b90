"""Results on stdout: tables on a terminal, JSON for programs."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

Json = Annotated[
    bool | None,
    typer.Option(
        "--json/--table", help="JSON or a table; by default a table on a terminal, JSON in a pipe."
    ),
]


def wants_json(choice: bool | None) -> bool:
    """Return the choice, or by default whether stdout is not a terminal."""
    return not sys.stdout.isatty() if choice is None else choice


def show(record: Mapping[str, Any], choice: bool | None, rendered: Any = None) -> None:
    """Print one result: as a line of JSON, or as a table."""
    if wants_json(choice):
        print(as_line(record))
    elif rendered is not None:
        from rich.console import Console

        Console(highlight=False).print(_calm(rendered))
    else:
        show_figures(record)


def show_figures(figures: Mapping[str, Any]) -> None:
    """Print names on the left and values on the right."""
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):<{width}}  {_readable(value)}")


def as_line(record: Mapping[str, Any]) -> str:
    """Return JSON on a single line, numpy's numbers included."""
    return json.dumps(record, ensure_ascii=False, default=lambda value: value.tolist())


def one_line(text: str) -> str:
    """Return a text on one line, without characters that cannot be printed."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def size_on_disk(folder: Path) -> int:
    """Return how many bytes the files in a model's folder have."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def readable_size(n_bytes: float) -> str:
    """Return a number of bytes in readable form.

    >>> readable_size(2_450_000), readable_size(12)
    ('2.5 MB', '12 bytes')
    """
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} bytes" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} GB"


def readable_time(seconds: float) -> str:
    """Return a number of seconds in readable form.

    >>> readable_time(3.14), readable_time(600)
    ('3.1 s', '10 min')
    """
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _calm(rendered: Any) -> Any:
    """The same with a line under the heads of tables, and no other lines."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table

    while hasattr(rendered, "__rich__"):
        rendered = rendered.__rich__()
    if isinstance(rendered, Group):
        return Group(*map(_calm, rendered.renderables))
    if isinstance(rendered, Table) and rendered.box is not None:
        rendered.box = SIMPLE_HEAD
        rendered.show_header = any(column.header for column in rendered.columns)
    return rendered


def _readable(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
