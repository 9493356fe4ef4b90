"""`umpteen reproduce`."""

from pathlib import Path
from typing import Annotated

import typer

from umpteen.cli.errors import say
from umpteen.cli.output import Json, readable_time, show, wants_json


def reproduce(
    name: Annotated[str, typer.Argument(metavar="PAPER", help="Such as eagle.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="Everything in small, to see that it runs.")
    ] = False,
    only: Annotated[
        str, typer.Option(metavar="TEXT", help="Only sections with this in their title.")
    ] = "",
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FOLDER", help="For PAPER.html and PAPER.json."),
    ] = Path("reproduce"),
    json: Json = None,
) -> None:
    """Measure the claims of a paper again, as a page with tables and figures.

    \b
    Examples:
      umpteen reproduce eagle --quick
      umpteen reproduce eagle -o pages/
      umpteen reproduce siamese --only debian -o pages/
    \b
    The paper's numbers stand beside ours. Data sets are taken from the folder that UMPTEEN_DATA
    names; where they are missing, the page says what was used instead. The page is written after
    each section: Ctrl-C keeps what is done.
    """
    from umpteen.reproduce import prepare
    from umpteen.reproduce.parts import Section
    from umpteen.reproduce.terminal import render

    reproduction = prepare(name, quick, only)
    for step in reproduction.run(output):
        if isinstance(step, Section):
            place = len(reproduction.measured) + 1
            say(f"{place} of {len(reproduction.sections)}: {step.title}")
        else:
            say(f"done in {readable_time(step.seconds)}: {output / name}.html")
            if not wants_json(json):
                show({}, False, render(step))
    if wants_json(json):
        show(reproduction.to_dict(), True)
