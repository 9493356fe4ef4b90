"""Table 7 on CIFAR-10: a ResNet with each of the heads, for one image and for stacks of several."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from papers import cifar
from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.multihead.tasks import Floats, Task, repeated
from umpteen.multihead import CascadeHead, LabelCode, ProductHead, SamplingHead
from umpteen.neural import Blueprint, FullHead, NetworkRecipe, NeuralClassifier, ResNet, blueprint

# Of the paper, ResNet-18, 200 epochs of 50,000 images, heads of {5; 2}.
_PAPER = {"full": 95.57, "MHP": 95.05, "MHC": 95.26, "MHS": 94.73}
_N_TEST = 2_000
_STACK_SIZES = (2, 3)  # images


def sections(quick: bool) -> list[Section]:
    """Sections for single images and for stacks of two and of three, if the images are there."""
    if not cifar.is_there():
        return []
    n_seeds = 1 if quick else 3
    alone = _Size(1, 100, 2, 8) if quick else _Size(1, 4_000, 8, 20)
    single = Section(
        "CIFAR-10: full, MHP, MHC and MHS below a ResNet",
        "with heads of {5; 2}, MHP, MHC and MHS are within a point of a full layer. The paper's "
        "are of ResNet-18, 200 epochs on 50,000 images of 32 x 32 pixels.",
        f"CIFAR-10, {alone.n_samples:,} images to learn from; {alone.in_words()}; "
        f"seeds: {n_seeds}. Nothing was tuned.",
        partial(_compare, alone, n_seeds),
    )
    stacked = [
        _Size(size, 100, 2, 8) if quick else _Size(size, 10_000, 10, 8) for size in _STACK_SIZES
    ]
    return [
        single,
        *(
            Section(
                f"CIFAR-10: stacks of {each.n_images} images below a ResNet",
                "if classes are combinations, one head for each part is as good as a full layer.",
                f"CIFAR-10, {each.n_samples:,} stacks of {each.n_images} random images, as "
                f"channels, so {10**each.n_images:,} classes; an image may be in several stacks; "
                f"{each.in_words()}; seeds: {n_seeds}. Nothing was tuned.",
                partial(_compare, each, n_seeds),
            )
            for each in stacked
        ),
    ]


@dataclass(frozen=True)
class _Size:
    """How much is learned: images in a stack, samples, epochs and layers."""

    n_images: int
    n_samples: int
    epochs: int
    depth: int

    def in_words(self) -> str:
        return (
            f"halved to 16 x 16 pixels; a ResNet of {self.depth} layers with 16 channels in its "
            f"first stage, {self.epochs} epochs of SGD with momentum (0.05, cosine, batches of 64, "
            "weight decay 5e-4), flips and crops"
        )


def heads(size: int) -> dict[str, Blueprint]:
    """Heads of {5; 2} for one image, otherwise MHP with a digit for each image."""
    lengths = [10 ** (size - 1), 10] if size > 1 else [5, 2]
    digits = LabelCode(10**size, [10] * size if size > 1 else lengths)
    return {
        "full": blueprint(FullHead),
        "MHP": blueprint(ProductHead, code=digits),
        "MHC": blueprint(CascadeHead, lengths=lengths, loss="softmax", hidden=64),
        "MHS": blueprint(SamplingHead, lengths=lengths),
    }


def stacks(size: int, n_samples: int) -> Task:
    """Stacks of random images as channels; the class is the list of their kinds.

    Single images stand once each; in stacks, an image may come again beside others.
    """
    per_class = max(10, size * n_samples // 10)
    parts = cifar.images(per_class)
    made = [
        _stacked(part, size, min(n_samples, most), seed)
        for seed, (part, most) in enumerate(zip(parts, (n_samples, _N_TEST), strict=True))
    ]
    return Task(f"stacks of {size}", *made[0], *made[1])


def _stacked(part: cifar.Part, size: int, n_samples: int, seed: int) -> cifar.Part:
    images, kinds = part
    random = np.random.default_rng(seed)
    if size == 1:
        rows = random.permutation(len(kinds))[:n_samples, None]
    else:
        rows = random.integers(len(kinds), size=(n_samples, size))
    rows[-1] = np.argmax(kinds)  # the last class exists: heads are made for all classes
    halved = images[rows].reshape(len(rows), 3 * size, 16, 2, 16, 2).mean(axis=(3, 5))
    return halved, (kinds[rows] * 10 ** np.arange(size)[::-1]).sum(axis=1)


def _compare(size: _Size, n_seeds: int) -> Iterator[Block]:
    task, started = stacks(size.n_images, size.n_samples), time.process_time()
    made = {
        name: partial(_network, head, size.epochs, size.depth)
        for name, head in heads(size.n_images).items()
    }
    found = repeated(task, made, n_seeds)
    yield task.in_words() + "."
    yield _table(found, _PAPER if size.n_images == 1 else {})
    minutes = (time.process_time() - started) / 60
    yield f"All of it took {minutes:.1f} minutes of one core."


def _network(head: Blueprint, epochs: int, depth: int, seed: int) -> NeuralClassifier:
    recipe = NetworkRecipe(
        optimizer="sgd", weight_decay=5e-4, augment="flip_crop", validation_fraction=0.0,
        all_labels=True,
    )  # fmt: skip
    return NeuralClassifier(
        blueprint(ResNet, depth=depth), head, epochs=epochs, batch_size=64, learning_rate=0.05,
        recipe=recipe, random_state=seed, n_jobs=1, verbose=False,
    )  # fmt: skip


def _table(found: dict[str, Floats], paper: dict[str, float]) -> Table:
    rows: list[list[Cell]] = [
        [
            name,
            over_seeds(runs[:, 0], paper.get(name)),
            over_seeds(runs[:, 0] - found["full"][:, 0]),
        ]
        for name, runs in found.items()
    ]
    return Table("Test accuracy, in %", ["head", "accuracy", "minus full, by seed"], rows)
