"""Table 3 and Figures 5 and 10: the multi-instance networks on images."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from umpteen import data
from umpteen.errors import DataFormatError
from umpteen.extras import require
from umpteen.validation import check_group_labels, check_groups

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from umpteen.aggregated.miml import CoAttentionMIML

SETS = {"MNIST": "images/mnist", "Fashion-MNIST": "images/fashion-mnist"}
PAPER = {  # accuracy in percent, by set and size of bags
    ("MNIST", 4): {"Deep-MIML": 94.70, "EAGLE-0": 94.82, "EAGLE": 94.82},
    ("MNIST", 50): {"Deep-MIML": 33.33, "EAGLE-0": 36.10, "EAGLE": 38.46},
    ("Fashion-MNIST", 4): {"Deep-MIML": 84.70, "EAGLE-0": 84.89, "EAGLE": 85.09},
    ("Fashion-MNIST", 50): {"Deep-MIML": 19.00, "EAGLE-0": 27.62, "EAGLE": 28.65},
}
# As many steps of training for few large bags as for many small ones, in order of magnitude.
TRAINING: dict[int, dict[str, Any]] = {
    4: {"batch_size": 64, "epochs": 8},
    50: {"batch_size": 16, "epochs": 12},
}
_MASKED = (
    {"temperature": 1, "loss": "assigned"},
    {"temperature": 3, "loss": "assigned"},
    {"temperature": 1, "loss": "list"},
)
CANDIDATES: dict[str, list[dict[str, Any]]] = {
    "Deep-MIML": [
        {"temperature": 0, "iterations": 0, "loss": loss, "learning_rate": rate}
        for loss, rate in (("list", 1e-3), ("list", 3e-4), ("assigned", 1e-3))
    ],
    "EAGLE-0": [{"iterations": 0, **settings} for settings in _MASKED],
    "EAGLE": [{"iterations": 20, **settings} for settings in _MASKED],
}


@dataclass(frozen=True)
class Images:
    """Images as rows of 784 numbers, the mean of the training images subtracted."""

    X: npt.NDArray[np.float32]
    labels: npt.NDArray[np.int64]
    X_test: npt.NDArray[np.float32]
    labels_test: npt.NDArray[np.int64]


def load_images(name: str, n_samples: int | None = None) -> Images:
    """A set of images under `UMPTEEN_DATA`, or the first `n_samples` of its training part."""
    found = data.load(name)
    if found.test is None:
        raise DataFormatError(f"{name} has no test images (t10k-images-idx3-ubyte): get them, too")
    X, X_test = (np.asarray(part.X).reshape(len(part.X), -1) for part in (found.train, found.test))
    labels, labels_test = (
        np.asarray(part.Y.argmax(axis=1)).ravel() for part in (found.train, found.test)
    )
    X, mean = X[:n_samples], X[:n_samples].mean(axis=0)
    return Images(X - mean, labels[:n_samples], X_test - mean, labels_test)


def random_bags(images: Images, size: int, seed: int) -> dict[str, list[list[int]]]:
    """Arguments of `fit`: bags of `size` images each, and the list of labels of each bag."""
    order = np.random.default_rng(seed).permutation(len(images.X))
    bags = np.array_split(order, max(len(order) // size, 1))
    return {
        "groups": [bag.tolist() for bag in bags],
        "group_labels": [images.labels[bag].tolist() for bag in bags],
    }


def table3(quick: bool) -> list[dict[str, Any]]:
    """Accuracy on single test images after training on bags: one row per set, size and method.

    What the paper leaves open (loss, learning rate, temperature) is chosen on a tenth of the bags
    of the first seed, by how well the labels named for its instances account for the lists of bags;
    so is the epoch, for every seed. Test images, and labels of single images, take no part.
    """
    seeds, n_samples = (1, 10_000) if quick else (3, None)
    rows: list[dict[str, Any]] = []
    for name, path in list(SETS.items())[: 1 if quick else None]:
        images = load_images(path, n_samples)
        for size in TRAINING:
            rows.extend(_rows(name, images, size, seeds, quick))
    return rows


def _rows(
    name: str, images: Images, size: int, seeds: int, quick: bool
) -> Iterator[dict[str, Any]]:
    for method, candidates in CANDIDATES.items():
        begin = time.process_time()
        tried = [
            fit_bags(images, size, 0, settings) for settings in candidates[: 1 if quick else None]
        ]
        best = int(np.argmax([max(model.validation_scores_) for model in tried]))
        chosen = [tried[best]]
        chosen += [fit_bags(images, size, seed, candidates[best]) for seed in range(1, seeds)]
        accuracies = [100 * model.score(images.X_test, images.labels_test) for model in chosen]
        yield {
            "set": name,
            "bag size": size,
            "method": method,
            "paper": PAPER[name, size][method],
            "ours": float(np.mean(accuracies)),
            "deviation": float(np.std(accuracies)),
            "seeds": seeds,
            "settings": candidates[best],
            "CPU seconds": time.process_time() - begin,
        }


def nearest_images(quick: bool) -> list[dict[str, Any]]:
    """What centring and iterations do to label embeddings: one row per set, size and choice.

    `nearest` is the share of labels in the lists of bags whose nearest image in the bag has it,
    `cosine` the mean cosine of two label embeddings.
    """
    return [
        {"set": name, "bag size": size, "center": center, "iterations": iterations}
        | _nearest(images, size, center, iterations)
        for name, path in list(SETS.items())[: 1 if quick else None]
        for images in [load_images(path, 10_000 if quick else None)]
        for size in TRAINING
        for center in (False, True)
        for iterations in (0, 20)
    ]


def _nearest(images: Images, size: int, center: bool, iterations: int) -> dict[str, float]:
    from umpteen.aggregated.miml.embeddings import label_embeddings  # needs PyTorch

    chosen = random_bags(images, size, seed=0)
    groups = check_groups(chosen["groups"], n_samples=len(images.X))
    counts = check_group_labels(chosen["group_labels"], n_groups=groups.shape[0])
    found = np.asarray(
        label_embeddings(images.X, groups, counts, iterations=iterations, center=center, n_jobs=1)
    )
    cosines = images.X / np.linalg.norm(images.X, axis=1, keepdims=True) @ found.T
    nearest = np.array(
        [bag[cosines[bag].argmax(axis=0)] for bag in map(np.array, chosen["groups"])]
    )
    hits = counts.multiply(images.labels[nearest] == np.arange(len(found)))
    pairs = ~np.eye(len(found), dtype=bool)
    return {
        "nearest": 100 * float(hits.sum() / counts.sum()),
        "cosine": float((found @ found.T)[pairs].mean()),
    }


def fit_bags(images: Images, size: int, seed: int, settings: dict[str, Any]) -> "CoAttentionMIML":
    """A network trained on random bags; one thread, so that times are those of one core."""
    from umpteen.aggregated.miml import CoAttentionMIML  # needs PyTorch

    model = CoAttentionMIML(
        **{**TRAINING[size], **settings}, random_state=seed, n_jobs=1, verbose=False
    )
    return model.fit(images.X, **random_bags(images, size, seed))


def embeddings_figure(
    name: str = "Fashion-MNIST", size: int = 4, iterations: int = 20, n_samples: int | None = None
) -> "Figure":
    """Label embeddings as pictures: Figure 5 (and 10) of the paper.

    Dark is where a label has more ink than the average image, light where it has less.
    """
    figures = require("matplotlib.figure", "plots")
    images = load_images(SETS[name], n_samples)
    settings = {"iterations": iterations, "epochs": 1, "validation_fraction": 0.0}
    embeddings = np.asarray(fit_bags(images, size, 0, settings).label_embeddings_)
    figure: Figure = figures.Figure(figsize=(10, 4.4), layout="constrained")
    side, reach = int(np.sqrt(embeddings.shape[1])), float(np.abs(embeddings).max())
    for label, axes in enumerate(figure.subplots(2, len(embeddings) // 2).ravel()):
        picture = embeddings[label].reshape(side, side)
        axes.imshow(picture, cmap="gray_r", vmin=-reach, vmax=reach)
        axes.set_title(f"label {label}", fontsize=9)
        axes.set_axis_off()
    figure.suptitle(f"{name}: label embeddings from random bags of {size} images")
    return figure
