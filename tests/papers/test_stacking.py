"""Images of several labels are made of images of their labels."""

from collections import Counter
from math import comb

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

from hypothesis import given
from hypothesis import strategies as st

from papers.collapse.stacking import stack_images

SIDE = 8


def plain(n_classes):
    """Two images per class, each with one brightness that tells its class and number."""
    values = np.arange(1, 2 * n_classes + 1, dtype=np.float32)
    images = np.broadcast_to(values[:, None, None, None], (2 * n_classes, 1, SIDE, SIDE)).copy()
    return images, np.repeat(np.arange(n_classes), 2)


def label_sets(made):
    return [tuple(row) for row in np.split(made.Y.indices, made.Y.indptr[1:-1])]


@given(st.integers(3, 5), st.integers(0, 3), st.integers(0, 100))
def test_images_hold_exactly_their_labels(n_classes, shift, seed):
    images, classes = plain(n_classes)
    made = stack_images(images, classes, {1: 2, 2: 2, 3: 1}, shift=shift, random_state=seed)
    for image, labels in zip(made.X, label_sets(made), strict=True):
        brightness = np.unique(image)
        seen = {classes[int(value) - 1] for value in brightness if value > 0}
        assert seen == set(labels)


def test_every_label_set_has_its_number_of_images():
    made = stack_images(*plain(5), {1: 7, 2: 3, 3: 2})
    counts = Counter(label_sets(made))
    assert len(counts) == 5 + comb(5, 2) + comb(5, 3)
    assert all(count == {1: 7, 2: 3, 3: 2}[len(labels)] for labels, count in counts.items())


def test_sizes_are_dealt_to_equal_groups_and_missing_sets_are_missing():
    made = stack_images(*plain(6), {1: 4, 2: (9, 3, 1)}, missing=[(5,), [3, 0]])
    counts = Counter(label_sets(made))
    sizes = Counter(count for labels, count in counts.items() if len(labels) == 2)
    assert (5,) not in counts
    assert (0, 3) not in counts
    assert sum(sizes.values()) == 14
    assert sorted(sizes) == [1, 3, 9]
    assert all(number in (4, 5) for number in sizes.values())


def test_without_shift_images_stand_in_corners():
    images, classes = plain(2)
    made = stack_images(images, classes, {1: 3, 2: 20}, shift=0)
    diagonal = set()
    for image, labels in zip(made.X[:, 0], label_sets(made), strict=True):
        corners = image[::SIDE, ::SIDE]
        np.testing.assert_array_equal(image, np.kron(corners, np.ones((SIDE, SIDE))))
        if len(labels) == 1:
            assert (corners.ravel()[:3] == 0).all()
        else:
            assert corners[0, 1] == corners[1, 0] == 0
            diagonal.add(classes[int(corners[0, 0]) - 1])
    assert diagonal == {0, 1}


def test_the_same_seed_gives_the_same_images():
    first, again, other = (
        stack_images(*plain(4), {1: 3, 2: 3}, random_state=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.Y.toarray(), again.Y.toarray())
    assert (first.X != other.X).any()


def test_shrinking_averages_squares():
    whole, half = (stack_images(*plain(3), {2: 2}, shrink=shrink) for shrink in (1, 2))
    n = len(whole.X)
    expected = whole.X.reshape(n, 1, SIDE, 2, SIDE, 2).mean(axis=(3, 5))
    np.testing.assert_allclose(half.X, expected)
