"""The command line: `umpteen fit`, `umpteen predict` and so on, over everything else.

Nothing heavy is imported before a command runs, so that `umpteen --help` answers at once.
Results go to stdout, as tables on a terminal and as JSON in a pipe; all else goes to stderr.
"""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0 fine, 1 an error, 2 wrong usage, 130 interrupted."""
    try:
        from umpteen.cli.app import run

        code = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
