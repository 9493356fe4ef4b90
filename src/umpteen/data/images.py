"""Images in idx files, the format of MNIST: `train-images-idx3-ubyte[.gz]` and the like."""

import gzip
import zlib
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from umpteen.data.samples import Samples
from umpteen.errors import DataFormatError

_PREFIXES = {"train": "train", "dev": "dev", "test": "t10k"}
_UNSIGNED_BYTES = 0x08


def find_images(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Return for each split that is there its file of images and its file of labels."""
    found = {}
    for split, prefix in _PREFIXES.items():
        images = _either(folder / f"{prefix}-images-idx3-ubyte")
        if images is not None:
            labels = _either(folder / f"{prefix}-labels-idx1-ubyte")
            found[split] = images, labels or folder / f"{prefix}-labels-idx1-ubyte"
    return found


def read_images(images: Path, labels: Path) -> Samples:
    """Read images as `X` `(n, 1, height, width)`, float32 from 0 to 1; classes as labels."""
    pixels, classes = read_idx(images, n_dimensions=3), read_idx(labels, n_dimensions=1)
    if len(pixels) != len(classes):
        raise DataFormatError(
            f"{images} has {len(pixels):,} images but {labels} has {len(classes):,} labels"
        )
    X = np.multiply(pixels[:, np.newaxis], np.float32(1 / 255), dtype=np.float32)
    return Samples(X=X, labels=[[str(label)] for label in classes.tolist()])


def read_idx(path: Path, n_dimensions: int) -> npt.NDArray[np.uint8]:
    """Read the array in an idx file of unsigned bytes, plain or gzipped."""
    data = _content(path)
    header = 4 + 4 * n_dimensions
    if data[:4] != bytes([0, 0, _UNSIGNED_BYTES, n_dimensions]) or len(data) < header:
        raise DataFormatError(
            f"{path} begins with {data[:4].hex(' ') or 'nothing'}; expected an idx file of "
            f"unsigned bytes with {n_dimensions} dimension(s): 00 00 08 {n_dimensions:02x}"
        )
    shape = tuple(int(size) for size in np.frombuffer(data, ">u4", n_dimensions, offset=4))
    expected = prod(shape)
    if len(data) - header != expected:
        raise DataFormatError(
            f"{path} announces {shape}, that is {expected:,} bytes, but has "
            f"{len(data) - header:,}; it is cut short or damaged: get it again"
        )
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)


def _either(path: Path) -> Path | None:
    candidates: Any = (path, path.with_name(f"{path.name}.gz"))
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except FileNotFoundError:
        raise DataFormatError(f"{path} is missing: images need their file of labels") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataFormatError(f"{path} cannot be read: {error}; get it again") from error
