"""A backend of Annif: `backend=umpteen` in `projects.cfg`.

Annif has no plug-ins, so its commands are run through this module, which adds the backend first:
`python -m umpteen.contrib.annif train my-project corpus.tsv.gz`. A program that imports Annif
calls `register()`.
"""

from importlib import import_module
from typing import Any


def register() -> None:
    """Add the backend "umpteen" to those that Annif knows."""
    from umpteen.contrib.annif.backend import UmpteenBackend

    import_module("annif.backend")._backend_fns["umpteen"] = lambda: UmpteenBackend


def create_app(*arguments: Any, **options: Any) -> Any:
    """Return Annif's web application with the backend, for WSGI servers such as gunicorn."""
    register()
    return import_module("annif").create_app(*arguments, **options)
