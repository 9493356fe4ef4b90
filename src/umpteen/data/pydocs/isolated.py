"""Collect in a separate interpreter, so that every process gets the same data set.

The docstrings of a running process may differ from those of its libraries: programs replace hooks
of `sys`, patch functions and import modules early, and `python -OO` drops all docstrings. The fresh
interpreter sees the standard library and the collected libraries only: no environment variables
that configure Python or a library, no `sitecustomize`, no other package.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from umpteen.data.pydocs.libraries import libraries
from umpteen.data.pydocs.storing import decode
from umpteen.errors import DatasetNotFoundError

_TIME_LIMIT = 600  # seconds; it takes about ten
_PROGRAM = Path(__file__).with_name("child.py")
# -P and -s: no folder of the caller or the user; -S: no site, hence no sitecustomize and no .pth
_OPTIONS = ("-P", "-s", "-S", "-W", "ignore", "-X", "utf8")
# What an interpreter may need to find its own files; all other variables are kept from it.
_KEPT = (
    "DYLD_FALLBACK_LIBRARY_PATH DYLD_LIBRARY_PATH LD_LIBRARY_PATH PATH PYTHONHOME SYSTEMROOT TEMP "
    "TMP TMPDIR"
)
_CHECK = "check that this Python can import numpy, scipy and scikit-learn, or reinstall them"
_ELSEWHERE = (
    "collect it with an ordinary Python, write its splits to a folder with umpteen.data.write, and "
    "load it here with folder=..."
)


def collect() -> bytes:
    """Return the collection of these libraries as `storing.encode` makes it."""
    python = _interpreter()
    homes = {library.module: library.home for library in libraries().values()}
    request = json.dumps({"python": sys.version, "homes": homes})
    environment = {name: os.environ[name] for name in _KEPT.split() if name in os.environ}
    try:
        child = subprocess.run(  # noqa: S603  our own interpreter and program
            [python, *_OPTIONS, str(_PROGRAM), request],
            cwd=_PROGRAM.parent,
            env=environment | {"PYTHONHASHSEED": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIME_LIMIT,
            check=True,
        )
        decode(child.stdout)
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip()
        reason = f"{python} ended with code {error.returncode}: {_last_line(said)}"
        failure = _failure(reason, _CHECK)
        failure.add_note(said)
        raise failure from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise _failure(f"{python}: {error}", _CHECK) from error
    return child.stdout


def _interpreter() -> str:
    """The Python that runs this process, also where another program embeds it."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    places = [sys.executable, f"{sys.exec_prefix}/bin/{name}", f"{sys.exec_prefix}/python.exe"]
    for place in map(Path, filter(None, places)):
        if "py" in place.name.lower() and place.is_file() and not getattr(sys, "frozen", False):
            return str(place.absolute())
    reason = f"it needs a Python interpreter, and this process has only {sys.executable!r}"
    raise _failure(reason, _ELSEWHERE)


def _failure(reason: str, advice: str) -> DatasetNotFoundError:
    return DatasetNotFoundError(
        f"the built-in data set 'pydocs' could not be collected: {reason}; {advice}"
    )


def _last_line(text: str) -> str:
    return text.splitlines()[-1].strip() if text else "no error message"
