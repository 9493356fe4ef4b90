"""Measure the claims of a paper again: `python -m papers eagle --quick`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from papers import PAPERS, prepare
from papers.contents import Section
from papers.terminal import render
from umpteen.errors import UmpteenError


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure section by section, and print each one's tables; return the exit code."""
    options = _parser().parse_args(arguments)
    console, log = Console(highlight=False), Console(stderr=True, highlight=False)
    try:
        reproduction = prepare(options.paper, options.quick, options.only)
        for step in reproduction.run(options.output):
            if isinstance(step, Section):
                place = len(reproduction.measured) + 1
                log.print(f"{place} of {len(reproduction.sections)}: {step.title}", markup=False)
            else:
                page = options.output / f"{options.paper}.html"
                log.print(f"done in {step.seconds:.1f} s: {page}", markup=False)
                console.print(render(step))
    except UmpteenError as error:
        log.print(f"papers: error: {error}", markup=False, soft_wrap=True)
        return 1
    except ModuleNotFoundError as error:
        advice = f"papers: error: {error}: pip install 'umpteen[neural,plots]'"
        log.print(advice, markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        log.print("papers: interrupted")
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m papers", description=__doc__)
    parser.add_argument("paper", choices=PAPERS)
    parser.add_argument("--quick", action="store_true", help="everything in small: does it run?")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="sections with TEXT in the title"
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("pages"), metavar="FOLDER",
        help="where PAPER.html and PAPER.json go",
    )  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
