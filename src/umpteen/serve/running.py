"""The process: uvicorn around the application."""

from collections.abc import Iterable

from umpteen.extras import require
from umpteen.serve.app import create_app
from umpteen.serve.models import Models, ServedModel, named_folders
from umpteen.serve.settings import Settings


def run(given: Iterable[str], host: str, port: int, settings: Settings) -> None:
    """Serve models until a signal ends it."""
    uvicorn = require("uvicorn", "serve")
    folders = named_folders(given)
    models = Models(ServedModel(name, folder) for name, folder in folders.items())
    uvicorn.run(create_app(models, settings), host=host, port=port, access_log=False, ws="none")
