"""Table 3 and the pictures, on images small enough to wait for."""

import numpy as np
import pytest

from umpteen.reproduce.eagle import miml


@pytest.fixture(autouse=True)
def _bars(monkeypatch):
    """Images of 2 x 2 pixels: each of four classes has one bright pixel."""

    def images(n_images, seed):
        random = np.random.default_rng(seed)
        labels = np.arange(n_images) % 4
        noise = 0.2 * random.standard_normal((n_images, 4))
        return (np.eye(4)[labels] - 0.25 + noise).astype(np.float32), labels

    monkeypatch.setattr(
        miml, "load_images", lambda *_: miml.Images(*images(1200, 0), *images(80, 1))
    )


def test_each_row_has_the_papers_number_and_ours():
    rows = miml.table3(quick=True)
    assert [(row["bag size"], row["method"]) for row in rows] == [
        (size, method) for size in (4, 50) for method in ("Deep-MIML", "EAGLE-0", "EAGLE")
    ]
    assert [row["paper"] for row in rows] == [94.70, 94.82, 94.82, 33.33, 36.10, 38.46]
    assert all(row["ours"] > 90 for row in rows if row["bag size"] == 4)


def test_bags_hold_each_image_once_and_its_label():
    images = miml.load_images("any")
    bags = miml.random_bags(images, size=50, seed=0)
    assert np.sort(np.concatenate(bags["groups"])).tolist() == list(range(1200))
    for members, labels in zip(bags["groups"], bags["group_labels"], strict=True):
        assert images.labels[members].tolist() == labels
        assert len(members) == 50


def test_centring_is_what_large_bags_need():
    rows = miml.nearest_images(quick=True)
    found = {(row["bag size"], row["center"], row["iterations"]): row["nearest"] for row in rows}
    assert len(found) == 8
    assert found[4, True, 0] > 90
    assert all(-1 <= row["cosine"] <= 1 for row in rows)


def test_every_label_has_its_picture():
    pytest.importorskip("matplotlib")
    figure = miml.embeddings_figure("MNIST")
    pictures = [axes.get_images()[0].get_array() for axes in figure.axes]
    assert [int(np.argmax(picture)) for picture in pictures] == [0, 1, 2, 3]
