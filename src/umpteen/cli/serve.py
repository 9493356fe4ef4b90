"""`umpteen serve`."""

from typing import Annotated

import typer


def serve(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL", help="A folder that `umpteen fit` made, or NAME=FOLDER."),
    ],
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="0.0.0.0 for every address of the machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535)] = 8000,
) -> None:
    """Answer over HTTP, with a page for people who tag.

    \b
    Examples:
      umpteen serve model/
      umpteen serve recipes=models/7/ news=models/12/ --port 8080
    """
    from umpteen.extras import require

    require("fastapi", "serve")
    from umpteen.serve.running import run
    from umpteen.serve.settings import Settings

    run(models, host, port, Settings())
