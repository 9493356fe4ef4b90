"""M-lab CIFAR-10 with a ResNet of 20 layers: all measures over training, decoders, fixed rows."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from papers import cifar
from papers.collapse.curves import falls
from papers.collapse.decoders import MEASURES, METHODS, answers
from papers.collapse.heads import n_learnt
from papers.collapse.stacking import stack_images
from papers.collapse.stacks import Measures, Sizes, Stacks, moments
from papers.contents import Block, Cell, Section, Table, Value
from papers.drawing import lines
from papers.progress import progress_bar
from umpteen.collapse import EtfHead
from umpteen.neural import NetworkRecipe, NeuralClassifier, ResNet, blueprint

_SHIFT = 7  # pixels, as the paper's code moves CIFAR images
_PER_CLASS = {"train": 1_000, "test": 500}
_PENALTIES = {"feature_penalty": 0.005, "weight_penalty": 0.001}


def sections(quick: bool) -> list[Section]:
    """One section, if the images are there."""
    if not cifar.is_there():
        return []
    sizes: Sizes = {1: 8, 2: 2} if quick else {1: 30, 2: 6}
    epochs, depth = (2, 8) if quick else (40, 20)
    return [
        Section(
            "Figures 2 to 4, Tables 1 and 2 in small: M-lab CIFAR-10, ResNet",
            "all measures fall in the last phase of training; the nearest mean (ONN) is right more "
            "often than thresholds (OvA); a fixed simplex is as good as a learned classifier. The "
            "paper trains ResNet-18 on 40,000 images of 64 x 64 pixels for 200 epochs.",
            f"CIFAR-10, padded and stacked as in the paper, then halved to 32 x 32 pixels; {sizes} "
            f"samples for each set of so many labels; a ResNet of {depth} layers, {epochs} epochs "
            "of AdamW with batches of 64, learning rate 0.003, weight decay 0.05, penalties on "
            "features 0.005 and on the last layer 0.001; one seed. A small part of the paper's "
            "sizes: it shows the phenomenon, not the paper's accuracy.",
            partial(_measured, sizes, epochs, depth),
        )
    ]


def _measured(sizes: Sizes, epochs: int, depth: int) -> Iterator[Block]:
    task = stacks(sizes)
    yield task.said()
    found, models, seconds = {}, {}, {}
    with progress_bar("M-lab CIFAR-10", 2) as advance:
        for name, learned in (("learned", True), ("fixed simplex", False)):
            started = time.perf_counter()
            measures = Measures(task.train.X, task.train.Y, moments(epochs))
            models[name] = _network(epochs, depth, learned).fit(
                task.train.X, task.train.Y, watch=measures
            )
            found[name], seconds[name] = measures, time.perf_counter() - started
            advance()
    for name, measures in found.items():
        yield lines(
            f"{name}: all measures, on a logarithmic axis", measures.epochs, measures.curves(),
            x_label="epochs", y_label="measure", logarithmic=True,
        )  # fmt: skip
        yield f"Last layer: {name}."
        yield falls(measures.curves())
    yield _decoders(task, models)
    for name, model in models.items():
        right = [100 * model.score(part.X, part.Y) for part in (task.train, task.test)]
        yield (
            f"{name}: {seconds[name] / 60:.1f} minutes, {n_learnt(model):,} parameters, the best "
            f"label is right for {right[0]:.1f} % of the training and {right[1]:.1f} % of the test "
            "samples."
        )


def _decoders(task: Stacks, models: dict[str, Any]) -> Table:
    """All methods, for all test samples and by the number of labels."""
    sizes = np.diff(task.test.Y.indptr)
    rows: list[list[Cell]] = []
    for name, model in models.items():
        for method, answer in answers(model, task).items():
            row: list[Cell] = [f"{name}, {method}"]
            for score in MEASURES.values():
                row.append(Value(100 * score(task.test.Y, answer.sets), digits=1))
            for m in np.unique(sizes):
                chosen = sizes == m
                f1 = MEASURES["F1, all pairs"](task.test.Y[chosen], answer.sets[chosen])
                row.append(Value(100 * f1, digits=1))
            rows.append(row)
    columns = ["last layer, method", *MEASURES, *(f"F1, {m} label(s)" for m in np.unique(sizes))]
    return Table(f"On the test part, in %; {', '.join(METHODS)} decode features", columns, rows)


def stacks(sizes: Sizes) -> Stacks:
    """Stacks of CIFAR images; no original is in more than one part."""
    train, test = cifar.images(_PER_CLASS["train"])
    half = len(train[1]) * 3 // 4
    parts = [(train[0][:half], train[1][:half]), (train[0][half:], train[1][half:]), test]
    fewer = {m: max(1, int(np.max(n)) // 2) for m, n in sizes.items()}
    made = [
        stack_images(*part, size, shift=_SHIFT, shrink=2, random_state=seed)
        for seed, (part, size) in enumerate(zip(parts, (sizes, fewer, fewer), strict=True))
    ]
    return Stacks("CIFAR-10", *made)


def _network(epochs: int, depth: int, learned: bool) -> NeuralClassifier:
    return NeuralClassifier(
        blueprint(ResNet, depth=depth), blueprint(EtfHead, learned=learned, **_PENALTIES),
        epochs=epochs, learning_rate=3e-3, batch_size=64, n_jobs=1, verbose=False,
        recipe=NetworkRecipe(weight_decay=0.05, validation_fraction=0.0),
    )  # fmt: skip
