"""The tutorials as notebooks: `python docs/notebooks.py` writes them next to their pages.

Prose becomes Markdown cells. Of the examples, those without output join the next one that has some,
so that each cell of code shows at most one result, at its end.
"""

import doctest
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TUTORIALS = Path(__file__).parent / "tutorials"
_BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
_ONLY_FOR_SITES = re.compile(r"^:::.*?^:::\n", re.DOTALL | re.MULTILINE)


def pages() -> list[Path]:
    """Return the tutorials."""
    return sorted(page for page in TUTORIALS.glob("*.md") if page.stem != "index")


def cells(page: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, the source and the expected output of each cell of a page."""
    text = _ONLY_FOR_SITES.sub("", page.read_text("utf-8"))
    prose, *rest = _BLOCK.split(text)
    yield "markdown", prose.strip(), ""
    for block, prose in zip(rest[::2], rest[1::2], strict=True):
        source = ""
        for example in doctest.DocTestParser().get_examples(block):
            source += example.source
            if example.want:
                yield "code", source.rstrip("\n"), example.want
                source = ""
        if source:
            yield "code", source.rstrip("\n"), ""
        if prose.strip():
            yield "markdown", prose.strip(), ""


def notebook(page: Path) -> dict[str, Any]:
    """Return a page in version 4.5 of the notebook format, without outputs."""
    found = []
    for number, (kind, source, _) in enumerate(cells(page)):
        cell: dict[str, Any] = {
            "cell_type": kind, "id": f"{page.stem}-{number}", "metadata": {},
            "source": source.splitlines(keepends=True),
        }  # fmt: skip
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        found.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": found, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4, "nbformat_minor": 5,
    }  # fmt: skip


def text_of(page: Path) -> str:
    """Return the file of a page's notebook."""
    return json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for tutorial in pages():
        tutorial.with_suffix(".ipynb").write_text(text_of(tutorial), "utf-8")
