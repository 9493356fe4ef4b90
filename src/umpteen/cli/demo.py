"""`umpteen demo`."""

from pathlib import Path
from typing import Annotated

import typer

from umpteen.cli.models import OF_FIT, note_compiling


def demo(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="For the model and the report.")
    ] = Path("umpteen-demo"),
) -> None:
    """Learn from data that is built in, and show what comes out.

    \b
    Example:
      umpteen demo
    \b
    The data is the documentation of the installed Python libraries: describe what you want, get
    the function. This takes half a minute, and longer on the first run.
    """
    note_compiling(OF_FIT)
    from umpteen.demo import main

    main(output)
