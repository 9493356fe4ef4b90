"""Multi-label images from single-label ones: several of them, in corners of a larger one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.data.samples import Samples
from umpteen.errors import FeaturesError, LabelsError, ParameterError
from umpteen.validation import check_count, check_k, check_seed

# (lower, right) for the first, second, ... image: two stand in opposite corners.
_CORNERS = np.array([(1, 1), (0, 0), (0, 1), (1, 0)])


def stack_images(
    images: npt.NDArray[np.float32],
    classes: Any,
    samples: Mapping[int, int | Sequence[int]],
    *,
    missing: Iterable[Sequence[int]] = (),
    shift: int = 6,
    shrink: int = 1,
    random_state: int = 0,
) -> Samples:
    """Images with one to four labels, made of images `(n, channels, height, width)` of one each.

    Each label set of m labels gets `samples[m]` images, each the pixelwise maximum of m images of
    twice the size, with one original in a corner: one stands at the lower right, two in opposite
    corners, at random. Originals are moved towards the middle by up to `shift` pixels. They are
    drawn with replacement, so that small sets can make large ones.

    With several numbers for a multiplicity, such as `{1: 5000, 2: (500, 50, 5)}`, its label sets
    are dealt at random into as many groups of those sizes. Label sets in `missing` get none.
    `shrink` averages squares of that many pixels a side, for quicker training.

    The answer has `X` and `Y`, in random order; the same `random_state` gives the same images.

    >>> digits = np.ones((4, 1, 8, 8), np.float32)
    >>> made = stack_images(digits, [0, 1, 2, 2], {1: 5, 2: 2}, missing=[(0, 1)])
    >>> made.X.shape, made.Y.sum(axis=0)
    ((19, 1, 16, 16), matrix([[7., 7., 9.]], dtype=float32))
    """
    classes = _checked(images, classes)
    shift, shrink = check_count(shift, "shift"), check_k(shrink, "shrink")
    random = np.random.default_rng(check_seed(random_state))
    n_classes = int(classes.max()) + 1
    sizes = {check_k(m, "multiplicity"): _sizes(m, sizes) for m, sizes in samples.items()}
    left_out = {tuple(sorted(labels)) for labels in missing}
    counts = [
        (labels, count)
        for labels, count in _counts(n_classes, sizes, random)
        if labels not in left_out and count
    ]
    by_class = [np.flatnonzero(classes == label) for label in range(n_classes)]
    rows = [labels for labels, count in counts for _ in range(count)]
    _check_room(images, rows, shift, shrink)
    order = random.permutation(len(rows))
    X = _blank(images, len(rows), shrink)
    for place, row in zip(order, rows, strict=True):
        chosen = [images[random.choice(by_class[label])] for label in row]
        X[place] = _shrunk(_stacked(chosen, shift, random), shrink)
    return Samples(X=X, Y=_indicator([rows[i] for i in np.argsort(order)], n_classes))


def _counts(
    n_classes: int, sizes: dict[int, list[int]], random: np.random.Generator
) -> Iterator[tuple[tuple[int, ...], int]]:
    """Each label set with its number of images."""
    for multiplicity, groups in sorted(sizes.items()):
        label_sets = list(combinations(range(n_classes), multiplicity))
        dealt = np.arange(len(label_sets)) * len(groups) // max(len(label_sets), 1)
        if len(groups) > 1:
            dealt = random.permutation(dealt)
        yield from (
            (labels, groups[group]) for labels, group in zip(label_sets, dealt, strict=True)
        )


def _stacked(
    chosen: list[npt.NDArray[np.float32]], shift: int, random: np.random.Generator
) -> npt.NDArray[np.float32]:
    channels, height, width = chosen[0].shape
    canvas = np.zeros((channels, 2 * height, 2 * width), np.float32)
    corners = random.permutation(_CORNERS[: len(chosen)])
    moves = random.integers(0, shift + 1, (len(chosen), 2))
    for image, (lower, right), (down, across) in zip(chosen, corners, moves, strict=True):
        top = height - down if lower else down
        left = width - across if right else across
        part = canvas[:, top : top + height, left : left + width]
        np.maximum(part, image, out=part)
    return canvas


def _shrunk(image: npt.NDArray[np.float32], shrink: int) -> npt.NDArray[np.float32]:
    channels, height, width = image.shape
    squares = image.reshape(channels, height // shrink, shrink, width // shrink, shrink)
    return np.asarray(squares.mean(axis=(2, 4)), np.float32)


def _blank(images: npt.NDArray[Any], n: int, shrink: int) -> npt.NDArray[np.float32]:
    _, channels, height, width = images.shape
    return np.empty((n, channels, 2 * height // shrink, 2 * width // shrink), np.float32)


def _indicator(rows: list[tuple[int, ...]], n_classes: int) -> csr_matrix:
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
    labels = np.array([label for row in rows for label in row], np.int32)
    return csr_matrix((np.ones(len(labels), np.float32), labels, indptr), (len(rows), n_classes))


def _sizes(multiplicity: int, sizes: int | Sequence[int]) -> list[int]:
    if multiplicity > len(_CORNERS):
        raise ParameterError(
            f"samples has the multiplicity {multiplicity}; an image has {len(_CORNERS)} corners"
        )
    groups = list(sizes) if isinstance(sizes, Sequence) else [sizes]
    if not groups:
        raise ParameterError(f"samples[{multiplicity}] is empty: expected a number of images")
    return [check_count(size, f"samples[{multiplicity}]") for size in groups]


def _checked(images: Any, classes: Any) -> npt.NDArray[np.int64]:
    if np.ndim(images) != 4:
        raise FeaturesError(
            f"images have shape {np.shape(images)}; expected (n, channels, height, width)"
        )
    classes = np.asarray(classes)
    if classes.shape != (len(images),) or classes.dtype.kind not in "iu" or not len(classes):
        raise LabelsError(
            f"classes have shape {classes.shape} and type {classes.dtype}; expected one class id "
            f"for each of {len(images):,} images, at least one"
        )
    absent = np.setdiff1d(np.arange(classes.max() + 1), classes)
    if classes.min() < 0 or len(absent):
        raise LabelsError(
            f"there is no image of class {absent[0] if len(absent) else classes.min()}: number "
            "the classes from 0, without gaps"
        )
    return np.asarray(classes, np.int64)


def _check_room(images: Any, rows: list[Any], shift: int, shrink: int) -> None:
    height, width = images.shape[2:]
    if not rows:
        raise ParameterError("samples asks for no image at all: say {1: 100, 2: 20} or so")
    if shift > min(height, width):
        raise ParameterError(f"shift={shift} moves images of {height} x {width} out of the frame")
    if 2 * height % shrink or 2 * width % shrink:
        raise ParameterError(
            f"shrink={shrink} does not divide the size {2 * height} x {2 * width}: choose 2, or 1"
        )
