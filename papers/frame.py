"""Measure the claims of a paper one after the other, and keep what is there so far."""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from papers import page
from papers.contents import Block, Figure, Measured, Section, Table
from umpteen import __version__


@dataclass
class Reproduction:
    """A paper, the sections to measure, and those that are measured."""

    name: str
    title: str
    paper: str
    quick: bool
    sections: list[Section]
    measured: list[Measured] = field(default_factory=list)

    def run(self, folder: Path) -> Iterator[Section | Measured]:
        """Measure; gives each section before, and what came out of it after.

        `folder` then has `NAME.html` and `NAME.json` with all sections so far, so whoever stops
        early keeps what is done.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for section in self.sections[len(self.measured) :]:
            yield section
            start = time.perf_counter()
            blocks = list(section.measure())
            self.measured.append(Measured(section, blocks, time.perf_counter() - start))
            self.write(folder)
            yield self.measured[-1]

    def write(self, folder: Path) -> None:
        """The page and its numbers; no reader ever sees half of a file."""
        _write(folder / f"{self.name}.html", page.render(self))
        _write(
            folder / f"{self.name}.json",
            json.dumps(self.to_dict(), indent=1, default=_plain, allow_nan=False),
        )

    def to_dict(self) -> dict[str, Any]:
        """All numbers."""
        return {
            "name": self.name,
            "paper": self.paper,
            "umpteen": __version__,
            "quick": self.quick,
            "finished": len(self.measured) == len(self.sections),
            "sections": [_section(measured) for measured in self.measured],
        }


def _section(measured: Measured) -> dict[str, Any]:
    section, blocks = measured.section, measured.blocks
    return {
        "title": section.title,
        "claim": section.claim,
        "data": section.data,
        "seconds": round(measured.seconds, 3),
        "tables": [asdict(block) for block in blocks if isinstance(block, Table)],
        "figures": [_figure(block) for block in blocks if isinstance(block, Figure)],
        "notes": [block for block in blocks if isinstance(block, str)],
    }


def _figure(figure: Block) -> dict[str, Any]:
    found = asdict(figure)  # type: ignore[arg-type]
    del found["svg"]
    return found


def _plain(value: Any) -> Any:
    return value.tolist()  # numpy's numbers and arrays


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(text, "utf-8")
    draft.replace(path)
