"""Table 7 on CIFAR-10: a ResNet with each of the heads."""

import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from papers import cifar
from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.progress import progress_bar
from umpteen.multihead import CascadeHead, ProductHead, SamplingHead
from umpteen.neural import FullHead, NetworkRecipe, NeuralClassifier, ResNet, blueprint

# Of the paper, ResNet-18, 200 epochs of 50,000 images, heads of {5; 2}.
_PAPER = {"full": 95.57, "MHP": 95.05, "MHC": 95.26, "MHS": 94.73}
_LENGTHS = [5, 2]
_HEADS = {
    "full": blueprint(FullHead),
    "MHP": blueprint(ProductHead, lengths=_LENGTHS),
    "MHC": blueprint(CascadeHead, lengths=_LENGTHS, loss="softmax", hidden=64),
    "MHS": blueprint(SamplingHead, lengths=_LENGTHS),
}


def sections(quick: bool) -> list[Section]:
    """One section, if the images are there."""
    if not cifar.is_there():
        return []
    per_class, epochs, n_seeds, depth = (10, 2, 1, 8) if quick else (150, 6, 3, 20)
    return [
        Section(
            "CIFAR-10: full, MHP, MHC and MHS below a ResNet",
            "with heads of {5; 2}, MHP, MHC and MHS are within a point of a full layer. The "
            "paper's are of ResNet-18, 200 epochs on 50,000 images.",
            f"CIFAR-10, {10 * per_class:,} images to learn from, as many to test on; a ResNet of "
            f"{depth} layers with 8 channels in its first stage, {epochs} epochs of SGD with "
            "momentum (0.05, cosine, batches of 64, weight decay 5e-4), flips and crops; seeds: "
            f"{n_seeds}. Nothing was tuned.",
            partial(_compare, per_class, epochs, n_seeds, depth),
        )
    ]


def _compare(per_class: int, epochs: int, n_seeds: int, depth: int) -> Iterator[Block]:
    train, test = cifar.images(per_class)
    started = time.perf_counter()
    found: dict[str, list[float]] = {name: [] for name in _HEADS}
    recipe = NetworkRecipe(
        optimizer="sgd", weight_decay=5e-4, augment="flip_crop", validation_fraction=0.0
    )
    with progress_bar("CIFAR-10", n_seeds * len(_HEADS)) as advance:
        for seed in range(n_seeds):
            for name, head in _HEADS.items():
                model = NeuralClassifier(
                    blueprint(ResNet, depth=depth, width=8), head, epochs=epochs, batch_size=64,
                    learning_rate=0.05, recipe=recipe, random_state=seed, n_jobs=1, verbose=False,
                )  # fmt: skip
                found[name].append(100 * model.fit(*train).score(*test))
                advance()
    rows: list[list[Cell]] = [
        [name, over_seeds(runs, _PAPER[name]), over_seeds(np.subtract(runs, found["full"]))]
        for name, runs in found.items()
    ]
    yield Table("Test accuracy, in %", ["head", "accuracy", "minus full, by seed"], rows)
    yield f"All of it took {(time.perf_counter() - started) / 60:.1f} minutes of one core."
