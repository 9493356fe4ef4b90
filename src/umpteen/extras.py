"""Optional dependencies: imported where they are needed, with advice where they are missing."""

from importlib import import_module
from types import ModuleType

from umpteen.errors import MissingExtraError


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, which comes with the optional part `extra`.

    >>> require("json", "plots").__name__
    'json'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"this needs {error.name or module!r}, which is not installed: "
            f"pip install 'umpteen[{extra}]'"
        ) from error
