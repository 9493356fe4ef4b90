"""The README as package indexes show it, where relative links lead nowhere.

`UMPTEEN_URL=https://host/owner/umpteen/blob/main/ python -m build` makes them absolute. Without an
address, they become plain text, and pictures are left out.
"""

import os
import re
from pathlib import Path

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # in the tests
    MetadataHookInterface = object

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def description(text: str, address: str = "") -> str:
    """Return a page whose links work everywhere.

    >>> description("See [a guide](docs/a.md).", "https://example.org/blob/main")
    'See [a guide](https://example.org/blob/main/docs/a.md).'
    >>> description("See [a guide](docs/a.md) and [b](https://b.org).")
    'See a guide and [b](https://b.org).'
    """

    def absolute(found: re.Match[str]) -> str:
        mark, words, path = found.groups()
        if not address:
            return "" if mark else words
        return f"{mark}[{words}]({address.rstrip('/')}/{path}{'?raw=true' if mark else ''})"

    return re.sub(r"\n{3,}", "\n\n", _LINK.sub(absolute, text))


class Readme(MetadataHookInterface):
    """Sets the field `readme` at build time."""

    def update(self, metadata: dict) -> None:
        """Add the description."""
        text = Path(self.root, "README.md").read_text("utf-8")
        address = os.environ.get("UMPTEEN_URL", "")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(text, address)}
