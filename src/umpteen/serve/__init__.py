"""Models behind HTTP: suggestions, explanations, learning from corrections, and a page for people.

`umpteen serve MODEL` starts it; `create_app` is for those who bring their own ASGI server. Needs
the extra `serve` (FastAPI, uvicorn), which is imported only when it is used.
"""

from umpteen.extras import require

require("fastapi", "serve")

from umpteen.serve.app import create_app  # noqa: E402
from umpteen.serve.settings import Settings  # noqa: E402

__all__ = ["Settings", "create_app"]
