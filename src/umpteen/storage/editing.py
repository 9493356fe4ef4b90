"""A change of a saved model: load, change and save as one step, however many want to."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from umpteen.errors import ModelChangedError
from umpteen.storage import load, save
from umpteen.storage.folder import locked, read_manifest


@contextmanager
def edit(path: str | PathLike[str], *, verify: bool | None = None) -> Iterator[Any]:
    """Load the model in the folder `path`, let the block change it, and save it there again.

    Until the block ends, nobody else can `edit` the model or `save` to the folder: other threads
    and processes wait, so no change is lost. `load` never waits. If the block raises an error,
    nothing is saved. If the process is killed, its lock is released.

    Some folders cannot be locked (on Windows, and on some network drives). If somebody else
    changed the model there meanwhile, `edit` leaves it as it is and raises `ModelChangedError`.

    `verify` has the same meaning as in `load`.

    >>> from tempfile import TemporaryDirectory
    >>> from umpteen import Tagger
    >>> with TemporaryDirectory() as folder:
    ...     Tagger().fit(["red apple", "iron ore"], ["fruit", "metal"]).save(folder)
    ...     with edit(folder) as tagger:
    ...         _ = tagger.add_labels("tool", examples=["a hammer and a saw"])
    ...     load(folder).labels
    ['fruit', 'metal', 'tool']
    """
    folder = Path(path)
    read_manifest(folder)  # a folder without a model is no folder to wait for
    with locked(folder) as alone:
        before = read_manifest(folder)["checksum"]
        model = load(folder, verify=verify)
        yield model
        if not alone and read_manifest(folder)["checksum"] != before:
            raise ModelChangedError(
                f"{folder} was changed by someone else after it was loaded, so this change was not "
                "saved: load the model and change it again"
            )
        save(model, folder)
