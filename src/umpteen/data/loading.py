"""Data sets by name: the built-in one, and any folder laid out like the message here says."""

import os
from collections.abc import Iterator
from os import PathLike
from pathlib import Path, PurePosixPath

from umpteen.data.dataset import Dataset
from umpteen.data.image_files import find_image_folders, read_image_folder
from umpteen.data.images import find_images, read_images
from umpteen.errors import DataFormatError, DatasetNotFoundError, ParameterError

_VARIABLE = "UMPTEEN_DATA"
_SPLITS = ("train", "dev", "test")
_LAYOUT = (
    "A data set is a folder with a file train.* (and dev.*, test.* if there are such splits) in "
    "any format that umpteen.data.read knows, such as train.jsonl, and perhaps labels.* with the "
    "labels' own texts; or image files such as train-images-idx3-ubyte.gz, or a folder of images "
    "for each class, such as train/cat/001.jpg, which may be zipped as train.zip"
)


def load(name: str, folder: str | PathLike[str] | None = None) -> Dataset:
    """Load a data set by its name.

    `"pydocs"` is built in: the documentation of the installed Python libraries. Any other name
    is a folder under `folder` (default: the environment variable `UMPTEEN_DATA`), such as
    `folder/name/train.jsonl.xz`; image sets may also be in `folder/images/name`.

    If there is no such data set, `DatasetNotFoundError` says where `load` looked and what is there.
    """
    if name == "pydocs" and folder is None:
        from umpteen.data.pydocs import load_pydocs

        return load_pydocs()
    _check_name(name)
    root = folder or os.environ.get(_VARIABLE)
    if not root:
        raise DatasetNotFoundError(
            f"no data set {name!r}: only 'pydocs' is built in, and no folder of data sets is "
            f"given. {_meant(name)}Pass folder=... or set {_VARIABLE} to it. {_LAYOUT}"
        )
    return _load_folder(_find(name, Path(root)), name)


def names(folder: str | PathLike[str] | None = None) -> list[str]:
    """Return the data sets that `load` finds, the built-in one first.

    >>> names()[0]
    'pydocs'
    """
    root = folder or os.environ.get(_VARIABLE)
    return ["pydocs", *(sorted(_available(Path(root))) if root else [])]


def _check_name(name: str) -> None:
    path = PurePosixPath(name.replace("\\", "/"))
    if not path.parts or path.is_absolute() or ".." in path.parts or set(name) & set(":\0"):
        raise ParameterError(
            f"{name!r} is not the name of a data set: names stay inside the folder of data "
            "sets. For a data set elsewhere, pass folder='the folder above it'"
        )


def _find(name: str, root: Path) -> Path:
    places = [root / name, root / "images" / name]
    for place in places:
        if _is_dataset(place):
            return place
    looked = " and ".join(str(place) for place in places)
    there = ", ".join(sorted(_available(root))) or "none"
    raise DatasetNotFoundError(
        f"no data set {name!r}: looked for {looked}. Data sets there: {there}; "
        f"built in: pydocs. {_meant(name)}{_LAYOUT}"
    )


def _meant(name: str) -> str:
    """Return advice for the path of a file or a folder in place of a name."""
    if Path(name).is_file():
        return f"It is a file: umpteen.data.read({name!r}) reads its samples. "
    if _is_dataset(Path(name)):
        above, _, own = name.rpartition("/")
        return f"It is a folder here: load({own!r}, folder={above or '.'!r}). "
    return ""


def _available(root: Path) -> Iterator[str]:
    for place in [*_folders(root), *_folders(root / "images")]:
        if _is_dataset(place):
            yield place.relative_to(root).as_posix()


def _folders(root: Path) -> list[Path]:
    try:
        return [path for path in root.iterdir() if path.is_dir()]
    except OSError:
        return []


def _is_dataset(place: Path) -> bool:
    return any("train" in find(place) for find in (_split_files, find_images, find_image_folders))


def _split_files(place: Path) -> list[str]:
    return [split for split in _SPLITS if _files(place, split)]


def _files(place: Path, stem: str) -> list[Path]:
    return sorted(
        path for path in place.glob(f"{stem}.*") if path.is_file() and path.suffix != ".zip"
    )


def _load_folder(place: Path, name: str) -> Dataset:
    label_texts = None
    if _files(place, "train"):
        from umpteen.data.formats import read, read_label_texts

        files = dict(_one_file_each(place))
        splits = {split: read(files[split]) for split in _SPLITS if split in files}
        label_texts = read_label_texts(files["labels"]) if "labels" in files else None
    else:
        splits = {split: read_images(*images) for split, images in find_images(place).items()}
        for split, folder in find_image_folders(place).items():
            splits.setdefault(split, read_image_folder(folder))
    return Dataset.from_samples(
        splits["train"], splits.get("dev"), splits.get("test"), label_texts=label_texts, name=name
    )


def _one_file_each(place: Path) -> Iterator[tuple[str, Path]]:
    for stem in (*_SPLITS, "labels"):
        files = _files(place, stem)
        if len(files) > 1:
            names = " and ".join(path.name for path in files)
            raise DataFormatError(f"{place} has {names}; keep one of them, or move the others")
        if files:
            yield stem, files[0]
