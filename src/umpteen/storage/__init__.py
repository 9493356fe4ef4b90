"""Model folders: `manifest.json` and one `.npy` file per array, never a pickle.

The manifest says what the model is made of, and is replaced in one step after all arrays are
on disk: whoever looks at the folder, and whenever a save is killed, sees the old model or the
new one. Arrays of another save have other file names and are removed when no manifest needs
them any more.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from umpteen.errors import (
    ModelChangedError,
    ModelCorruptError,
    ModelVersionError,
    UmpteenError,
)
from umpteen.storage.arrays import open_array
from umpteen.storage.checking import refusals
from umpteen.storage.declarations import (
    Given,
    Index,
    NotEmpty,
    Offsets,
    OneOf,
    Shape,
    Size,
    Sizes,
    Within,
    is_rising,
)
from umpteen.storage.folder import locked, read_manifest, versions, write_model
from umpteen.storage.hub import HubAddress, download
from umpteen.storage.packing import pack
from umpteen.storage.registry import storable
from umpteen.storage.unpacking import unpack

__all__ = [
    "Given",
    "Index",
    "NotEmpty",
    "Offsets",
    "OneOf",
    "Shape",
    "Size",
    "Sizes",
    "Within",
    "edit",
    "is_rising",
    "load",
    "refusals",
    "save",
    "storable",
]

_ATTEMPTS = 10
_QUICKLY_VERIFIED = 200_000_000  # bytes, whose checksums take a tenth of a second


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write `model` into the folder `path`; an existing model is replaced.

    A kill, Ctrl-C or a full disk at any moment leaves the old model. A folder with
    contents other than a model is refused, and files that are not ours are left alone. Other
    processes that save to the same path wait; on Windows there is no such lock.

    It stores the constructor's parameters and the attributes that end in `_`, or the fields of a
    `storable` dataclass.

    >>> from dataclasses import dataclass
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> @storable
    ... @dataclass
    ... class Ranking:
    ...     names: list[str]
    ...     scores: np.ndarray
    >>> with TemporaryDirectory() as folder:
    ...     save(Ranking(["a", "b"], np.array([0.5, 2.0])), folder)
    ...     load(folder)
    Ranking(names=['a', 'b'], scores=array([0.5, 2. ]))
    """
    content, arrays = pack(model)
    write_model(Path(path), content, arrays)


def load(path: str | PathLike[str], *, mmap: bool = True, verify: bool | None = None) -> Any:
    """Return the model that was saved in the folder `path`; its predictions are unchanged.

    With `mmap=True`, large arrays are memory-mapped: they are read when they are first used, and
    processes share their memory. Changes to such arrays stay in memory.

    You can load a model from an untrusted source: no code from the folder is executed, no file
    outside the folder is opened, and every array that is used as an index is checked.

    `verify=True` compares the checksum of every array with the manifest. This reads the whole
    model and finds any number that changed after `save`. `verify=False` skips the comparison. By
    default, models of up to 200 MB are verified.

    Models of earlier releases are upgraded in memory; save them again to keep the result.

    `"hf://user/name"` is a model on the Hugging Face Hub, with the extra `hub`; it is downloaded
    once. `"hf://user/name@revision"` pins a branch, a tag or, best, a commit. By default, such
    models are always verified.
    """
    address = HubAddress.of(path)
    folder = Path(path) if address is None else download(address)
    if address is not None and verify is None:
        verify = True
    for _ in range(_ATTEMPTS):
        manifest = read_manifest(folder)
        try:
            return _open(folder, manifest, mmap, verify)
        except ModelCorruptError as error:
            if read_manifest(folder)["checksum"] == manifest["checksum"]:
                raise
            problem = error  # a save came in between and removed the files of its predecessor
    raise problem


def _open(folder: Path, manifest: dict[str, Any], mmap: bool, verify: bool | None) -> Any:
    try:
        entries = manifest["arrays"]
        if verify is None:
            verify = sum(entry["bytes"] for entry in entries) <= _QUICKLY_VERIFIED
        arrays = [open_array(folder, entry, mmap, verify) for entry in entries]
        return unpack(manifest["model"], arrays, str(manifest["versions"]["umpteen"]))
    except (ModelCorruptError, ModelVersionError) as problem:
        raise type(problem)(f"{folder} cannot be used: {problem}") from None
    except (UmpteenError, OSError, MemoryError):
        raise
    except Exception as problem:
        raise ModelCorruptError(
            f"{folder} cannot be read ({type(problem).__name__}: {problem}). It was saved with "
            f"{manifest.get('versions')}, this is {versions()}: use the same versions, or train "
            "and save the model again"
        ) from problem


@contextmanager
def edit(path: str | PathLike[str], *, verify: bool | None = None) -> Iterator[Any]:
    """Load the model in the folder `path`, let the block change it, and save it there again.

    Until the block ends, nobody else can `edit` the model or `save` to the folder: other threads
    and processes wait, so no change is lost. `load` never waits. If the block raises an error,
    nothing is saved. If the process is killed, its lock is released.

    Folders cannot be locked on Windows and on some network drives. If somebody else changed the
    model there in the meantime, `edit` leaves it as it is and raises `ModelChangedError`.

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
