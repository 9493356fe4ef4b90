"""Images in folders of classes, or in zip archives of such folders."""

import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError
from umpteen.extras import require
from umpteen.validation import check_k

_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
_SPLITS = ("train", "dev", "test")


def find_image_folders(place: Path) -> dict[str, Path]:
    """Return for each split that is there `train/` or `train.zip`, with images in it."""
    found = {}
    for split in _SPLITS:
        for path in (place / split, place / f"{split}.zip"):
            if path.exists() and next(iter(_members(path)), None) is not None:
                found[split] = path
    return found


def read_image_folder(
    path: str | PathLike[str], *, size: tuple[int, int] | None = None, per_class: int | None = None
) -> Samples:
    """Read images from a folder, or a zip archive, that has a folder of image files per class.

    `X` is `(n, channels, height, width)`, float32 from 0 to 1, with one channel if all images are
    grey and three otherwise; labels are the names of the folders. Needs Pillow:
    `pip install 'umpteen[images]'`.

    Parameters
    ----------
    size : height and width that images are resized to. By default all must have the same size.
    per_class : number of images that are read of each class, the first by name. By default all.
    """
    found = _first_of_each(_members(Path(path)), per_class)
    if not found:
        raise DataFormatError(
            f"{path} has no images; expected a folder or a zip archive with a folder of image "
            "files for each class, such as cat/001.jpg"
        )
    with _opener(Path(path)) as opened:
        images = [_pixels(opened, Path(path), name, size) for name in found]
    _check_shapes(images, found, path)
    channels = max(pixels.shape[2] for pixels in images)
    X = np.empty((len(images), channels, *images[0].shape[:2]), np.float32)
    for row, pixels in enumerate(images):
        X[row] = np.multiply(pixels.transpose(2, 0, 1), np.float32(1 / 255))
    return Samples(X=X, labels=[[_class_of(name)] for name in found], ids=found)


def _members(path: Path) -> Iterator[str]:
    """Yield names such as `cat/001.jpg`, in order."""
    if path.is_dir():
        names = [file.relative_to(path).as_posix() for file in path.glob("*/*")]
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    else:
        return
    for name in sorted(names):
        path_names = PurePosixPath(name).parts
        if (
            len(path_names) >= 2
            and name.lower().endswith(_ENDINGS)
            and not path_names[-1].startswith(".")
        ):
            yield name


def _first_of_each(names: Iterator[str], per_class: int | None) -> list[str]:
    if per_class is None:
        return list(names)
    most, counts, kept = check_k(per_class, "per_class"), dict[str, int](), []
    for name in names:
        counts[_class_of(name)] = counts.get(_class_of(name), 0) + 1
        if counts[_class_of(name)] <= most:
            kept.append(name)
    return kept


def _class_of(name: str) -> str:
    return PurePosixPath(name).parts[-2]


@contextmanager
def _opener(path: Path) -> Iterator[Any]:
    """Give what opens a member, a file or an entry of the archive."""
    if path.is_dir():
        yield lambda name: (path / name).open("rb")
        return
    with zipfile.ZipFile(path) as archive:
        yield archive.open


def _pixels(
    opened: Any, path: Path, name: str, size: tuple[int, int] | None
) -> npt.NDArray[np.uint8]:
    """The pixels of an image, `(height, width, channels)`."""
    library = require("PIL.Image", "images")
    try:
        file: AbstractContextManager[IO[bytes]] = opened(name)
        with file as content, library.open(content) as image:
            grey = image.mode in ("1", "L", "I;16")
            converted = image.convert("L" if grey else "RGB")
            if size is not None:
                converted = converted.resize((size[1], size[0]))
            pixels = np.asarray(converted, np.uint8)
    except (OSError, ValueError, zipfile.BadZipFile, library.DecompressionBombError) as error:
        raise DataFormatError(
            f"{path}: {name} is no image, or damaged ({error}): get it again, or remove it"
        ) from error
    return pixels[:, :, None] if grey else pixels


def _check_shapes(images: list[Any], names: list[str], path: Any) -> None:
    for pixels, name in zip(images, names, strict=True):
        if pixels.shape[:2] != images[0].shape[:2]:
            raise DataFormatError(
                f"{path}: {names[0]} has {images[0].shape[:2]} pixels (height, width), but "
                f"{name} has {pixels.shape[:2]}: pass size=(height, width) to resize all of them"
            )
