"""An HTTP server for models: suggestions, explanations, learning from corrections, and a web page.

`umpteen serve MODEL` starts it; use `create_app` with your own ASGI server. This needs the extra
`serve` (FastAPI, uvicorn), which is imported only when it is used.
"""

from typing import TYPE_CHECKING, Any

from umpteen.extras import require

if TYPE_CHECKING:
    from umpteen.serve.app import create_app as create_app
    from umpteen.serve.labels import LabelSearch as LabelSearch
    from umpteen.serve.running import open_models as open_models
    from umpteen.serve.settings import Settings as Settings

__all__ = ["LabelSearch", "Settings", "create_app", "open_models"]

_HOME = {
    "LabelSearch": "labels",
    "Settings": "settings",
    "create_app": "app",
    "open_models": "running",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'umpteen.serve' has no attribute {name!r}")
    require("fastapi", "serve")
    return getattr(require(f"umpteen.serve.{_HOME[name]}", "serve"), name)
