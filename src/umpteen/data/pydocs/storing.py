"""The collection as bytes, and its cache: collecting takes seconds, reading it back less than one.

The cache is a convenience only. Where it cannot be written, nothing is kept; where it cannot be
read or is damaged, the collection is made again.
"""

import gzip
import json
import os
import platform
import sys
import sysconfig
import zlib
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from umpteen.data.pydocs.assemble import Collection
from umpteen.data.pydocs.libraries import libraries
from umpteen.data.samples import Samples
from umpteen.progress import status_line
from umpteen.writing import open_to_write

COLLECTOR_VERSION = 5  # raise it with any change to what is collected


def cached(collect: Callable[[], bytes]) -> Collection:
    """Return the collection out of the cache, or a new one, then kept there."""
    path = cache_path()
    collection = None if path is None else _read(path)
    if collection is None:
        with status_line("Collecting the documentation of Python and its libraries (once)"):
            data = collect()
        if path is not None:
            _write(path, data)
        collection = decode(data)
    return collection


def cache_path() -> Path | None:
    """Return the path of this installation's cache file, or None without a home folder.

    The file name contains everything that the collection depends on: the versions of the
    collector, Python and the libraries, and a checksum of the Python build and all locations.
    """
    found = libraries()
    named = [f"{name}{found[name].version}" for name in ("numpy", "scipy", "scikit-learn")]
    python = [sys.version, sys.platform, platform.machine(), sysconfig.get_path("stdlib")]
    checksum = sha256(repr((python, sorted(found.items()))).encode()).hexdigest()[:12]
    version = f"py{platform.python_version()}"
    name = "-".join([f"pydocs-{COLLECTOR_VERSION}", version, *named, checksum])
    try:
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(root) / "umpteen" / f"{name}.json.gz"


def encode(collection: Collection) -> bytes:
    """Return the collection as compressed JSON, the same bytes for the same collection."""
    splits = {
        name: {"texts": split.texts, "labels": split.labels, "ids": split.ids}
        for name, split in collection.splits.items()
    }
    text = json.dumps({"splits": splits, "label_texts": collection.label_texts})
    return gzip.compress(text.encode(), compresslevel=6, mtime=0)


def decode(data: bytes) -> Collection:
    """Return the collection back; raise a ValueError where the bytes are damaged."""
    try:
        content = json.loads(gzip.decompress(data))
        splits = {name: Samples(**content["splits"][name]) for name in ("train", "dev", "test")}
        return Collection(splits, dict(content["label_texts"]))
    except (OSError, EOFError, zlib.error, KeyError, TypeError) as error:
        raise ValueError(f"not a stored collection: {error}") from error


def _read(path: Path) -> Collection | None:
    try:
        return decode(path.read_bytes())
    except (OSError, ValueError):
        return None


def _write(path: Path, data: bytes) -> None:
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_to_write(path) as file:
            file.write(data)
