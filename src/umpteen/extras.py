"""Optional dependencies: imported where they are needed, with advice where they are missing."""

from importlib import import_module
from types import ModuleType

from umpteen.errors import MissingExtraError

_WITH_PYTORCH = ("encoders", "neural", "words")


def require(module: str, extra: str) -> ModuleType:
    """Import `module`, which comes with the optional part `extra`.

    >>> require("json", "plots").__name__
    'json'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"this needs {error.name or module!r}, which is not installed: {how_to_install(extra)}"
        ) from error


def how_to_install(extra: str) -> str:
    """Return the command that installs an optional part.

    >>> how_to_install("plots")
    "pip install 'umpteen[plots]' (in a clone: pip install -c constraints.txt '.[plots]')"
    """
    in_a_clone = f"pip install -c constraints.txt '.[{extra}]'"
    command = f"pip install 'umpteen[{extra}]' (in a clone: {in_a_clone})"
    if extra not in _WITH_PYTORCH:
        return command
    return (
        f"{command}. Without a GPU, first install PyTorch's build for CPUs, which is smaller by "
        "gigabytes"
    )
