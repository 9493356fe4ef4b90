"""Collect the documentation of this Python: all sources together."""

import os
import subprocess
import sys

from umpteen.data.pydocs.assemble import Collection, assemble
from umpteen.data.pydocs.imported import compiled_docstrings, package_docstrings
from umpteen.data.pydocs.stdlib import standard_library_docstrings
from umpteen.data.pydocs.storing import decode

_TIME_LIMIT = 600  # seconds; it takes about ten
_PROGRAM = (
    "import sys; from umpteen.data.pydocs.collecting import collect_here; "
    "from umpteen.data.pydocs.storing import encode; "
    "sys.stdout.buffer.write(encode(collect_here()))"
)


def collect() -> Collection:
    """The collection; `python -OO` has no docstrings, so there another Python is asked."""
    return collect_here() if sys.flags.optimize < 2 else _collect_there()


def collect_here() -> Collection:
    """The collection of this process, without what it lacks."""
    compiled, packages = compiled_docstrings(), package_docstrings()
    docstrings = compiled.docstrings | packages.docstrings | standard_library_docstrings()
    return assemble(docstrings, compiled.aliases | packages.aliases)


def _collect_there() -> Collection:
    environment = os.environ | {"PYTHONOPTIMIZE": "", "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        child = subprocess.run(  # noqa: S603  our own interpreter and program
            [sys.executable, "-c", _PROGRAM],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIME_LIMIT,
            check=True,
        )
        return decode(child.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return collect_here()._replace(is_complete=False)
