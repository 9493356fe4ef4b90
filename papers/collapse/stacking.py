"""Multi-label images from single-label ones: several of them, in corners of a larger one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

# (lower, right) for the first, second, ... image: two stand in opposite corners.
_CORNERS = np.array([(1, 1), (0, 0), (0, 1), (1, 0)])


@dataclass(frozen=True, eq=False)
class Images:
    """Images `(n, channels, height, width)` and their labels."""

    X: Any
    Y: csr_matrix


def stack_images(
    images: npt.NDArray[np.float32],
    classes: Any,
    samples: Mapping[int, int | Sequence[int]],
    *,
    missing: Iterable[Sequence[int]] = (),
    shift: int = 6,
    shrink: int = 1,
    random_state: int = 0,
) -> Images:
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
    classes = np.asarray(classes)
    random = np.random.default_rng(random_state)
    n_classes = int(classes.max()) + 1
    sizes = {m: [n] if isinstance(n, int) else list(n) for m, n in samples.items()}
    left_out = {tuple(sorted(labels)) for labels in missing}
    counts = [
        (labels, count)
        for labels, count in _counts(n_classes, sizes, random)
        if labels not in left_out and count
    ]
    by_class = [np.flatnonzero(classes == label) for label in range(n_classes)]
    rows = [labels for labels, count in counts for _ in range(count)]
    order = random.permutation(len(rows))
    X = _blank(images, len(rows), shrink)
    for place, row in zip(order, rows, strict=True):
        chosen = [images[random.choice(by_class[label])] for label in row]
        X[place] = _shrunk(_stacked(chosen, shift, random), shrink)
    return Images(X, _indicator([rows[i] for i in np.argsort(order)], n_classes))


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
