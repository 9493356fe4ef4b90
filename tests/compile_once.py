"""Let one process of a test run compile a kernel, while the others wait for it and load the result.

Without it, all processes that meet a kernel for the first time at once compile it.
"""

import fcntl
import tempfile
from pathlib import Path
from typing import Any

from numba.core.dispatcher import Dispatcher

_compile = Dispatcher.compile


def _compile_once(self: Dispatcher, signature: Any) -> Any:
    name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
    if not name.startswith("umpteen."):
        return _compile(self, signature)
    # A kernel waits only for kernels that it calls, so no two processes wait for each other.
    with (Path(tempfile.gettempdir()) / f"compiling-{name}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _compile(self, signature)


def install() -> None:
    """Wait for other processes from now on, in this process."""
    Dispatcher.compile = _compile_once
