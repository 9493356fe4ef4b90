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
    """Load the model in the folder `path`, let it be changed, and save it there again.

    From the load to the save nobody else can `edit` the model or `save` another one there: they
    wait, in this process or in any other, so that no change is lost. A process that is killed
    keeps nobody waiting. After an error nothing is saved. Who only loads the model never waits.

    Where folders cannot be locked (on Windows, and on some network drives), a model that was
    changed by someone else meanwhile is not replaced: that is a `ModelChangedError`.

    `verify` is that of `load`.

    >>> from tempfile import TemporaryDirectory
    >>> from umpteen import Tagger
    >>> with TemporaryDirectory() as folder:
    ...     Tagger().fit(["red apple", "iron ore"], ["fruit", "metal"]).save(folder)
    ...     with edit(folder) as tagger:
    ...         tagger = tagger.add_labels("tool", examples=["a hammer and a saw"])
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
                f"{folder} was changed by someone else meanwhile, and was left as it is now: load "
                "it and change it again"
            )
        save(model, folder)
