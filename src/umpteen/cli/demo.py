"""`umpteen demo`."""

import sys
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from umpteen.cli.models import OF_FIT, note_compiling


def demo(
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FOLDER", help="Folder for the model and the report."
        ),
    ] = Path("umpteen-demo"),
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the model, with a page to try it.")
    ] = False,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Port of the page, with --serve.")
    ] = 8000,
) -> None:
    """Train a model on the built-in data, and show the results.

    \b
    Examples:
      umpteen demo
      umpteen demo --serve
    \b
    The data is the documentation of Python libraries: describe what you want, and get the function.
    This takes half a minute, and longer on the first run.
    """
    model = output / "model"
    if not serve or not (model / "manifest.json").exists():
        note_compiling(OF_FIT)
        from umpteen.demo import main

        main(output)
    if serve:
        _serve(model, port)


def _serve(model: Path, port: int) -> None:
    """Serve the model of the demo, and open the page if a person looks on."""
    from umpteen.serve import Settings, open_models
    from umpteen.serve.running import run

    settings = Settings()
    if sys.stdout.isatty() and port:
        threading.Timer(1.0, webbrowser.open, [f"http://127.0.0.1:{port}"]).start()
    run(open_models([f"pydocs={model}"], settings), "127.0.0.1", port, settings)
