"""How much is read at once, so that a file without an end cannot fill the memory."""

import os
import re

from umpteen.errors import ParameterError

VARIABLE = "UMPTEEN_MAX_LINE"

_DEFAULT = "64MB"
_LEAST = 100_000  # bytes
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", re.IGNORECASE | re.ASCII)


def parse_size(text: str) -> float | None:
    """Return a size in bytes; None for what is no size.

    >>> parse_size("4GB"), parse_size("1.5 MB"), parse_size("1000"), parse_size("much")
    (4000000000.0, 1500000.0, 1000.0, None)
    """
    match = _SIZE.fullmatch(text)
    return None if match is None else float(match[1]) * _UNITS[match[2].lower()]


def max_line_bytes() -> int:
    """Return how many bytes a line of a file may have, decompressed."""
    size = parse_size(_given())
    if size is None or size < _LEAST:
        raise ParameterError(
            f"the environment variable {VARIABLE} is {_given()!r}; expected a size of at least "
            "100kB, such as 256MB"
        )
    return int(size)


def limit_advice() -> str:
    """Return the advice for a line, or a manifest, that is longer than allowed.

    >>> limit_advice()
    'longer than 64MB, the limit; to allow more, set the environment variable UMPTEEN_MAX_LINE=1GB'
    """
    larger = "1GB" if max_line_bytes() < 10**9 else "100GB"
    return (
        f"longer than {_given()}, the limit; to allow more, set the environment variable "
        f"{VARIABLE}={larger}"
    )


def _given() -> str:
    return os.environ.get(VARIABLE) or _DEFAULT
