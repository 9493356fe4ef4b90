"""The command line: `umpteen fit`, `umpteen predict` and so on, over everything else.

Nothing heavy is imported before a command runs, so that `umpteen --help` answers at once.
Results go to stdout, as tables on a terminal and as JSON in a pipe; all else goes to stderr.
"""

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command and exit: 0 fine, 1 an error, 2 wrong usage, 130 interrupted."""
    _occupy_closed_streams()
    try:
        from umpteen.cli.app import run

        code = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _occupy_closed_streams() -> None:
    """Connect closed standard streams (`>&-`, `2>&-`) to /dev/null.

    Otherwise the next file that is opened would get the descriptor of the stream, and with it all
    output to the stream. `sys.stdin` stays None if it is closed: reading from it is an error.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest number
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
