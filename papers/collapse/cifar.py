"""M-lab CIFAR-10 with a ResNet of 20 layers: all measures over training, decoders, fixed rows."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
_SHRINK = 4  # from 64 x 64 pixels to 16 x 16
_PER_CLASS = {"train": 1_000, "test": 500}
_PENALTIES: dict[str, Any] = {"feature_penalty": 0.005, "weight_penalty": 0.001}
_MISSING = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]


@dataclass(frozen=True)
class Case:
    """A network and the label sets that it learns from."""

    sizes: Sizes
    learned: bool = True
    missing: Sequence[tuple[int, int]] = ()


def sections(quick: bool) -> list[Section]:
    """One section, if the images are there."""
    if not cifar.is_there():
        return []
    single, pairs = (8, 2) if quick else (40, 10)
    groups = 2 * pairs, pairs, max(1, pairs // 8)
    balanced: Sizes = {1: single, 2: pairs}
    cases = {
        "learned": Case(balanced),
        "fixed simplex": Case(balanced, learned=False),
        "learned, pairs imbalanced": Case({1: single, 2: groups}),
        "learned, five pairs missing": Case(balanced, missing=_MISSING),
    }
    epochs, depth = (2, 8) if quick else (50, 20)
    return [
        Section(
            "Figures 2 to 4, Tables 1 and 2 in small: M-lab CIFAR-10, ResNet",
            "all measures fall in the last phase of training, also if pairs are imbalanced or "
            "missing; the nearest mean (ONN) is right more often than thresholds (OvA); a fixed "
            "simplex is as good as a learned classifier. The paper trains ResNet-18 on 40,000 "
            "images of 64 x 64 pixels for 200 epochs.",
            f"CIFAR-10, padded and stacked as in the paper, then shrunk to 16 x 16 pixels; "
            f"{balanced} samples for each set of so many labels, or groups of {groups} samples per "
            f"pair; a ResNet of {depth} layers, {epochs} epochs of AdamW with batches of 64, "
            "learning rate 0.003, weight decay 0.05, penalties on features 0.005 and on the last "
            "layer 0.001; one seed. A small part of the paper's sizes: it shows the phenomenon on "
            "training samples, not the paper's accuracy.",
            partial(_measured, cases, epochs, depth),
        )
    ]


def _measured(cases: Mapping[str, Case], epochs: int, depth: int) -> Iterator[Block]:
    found, models, seconds, tasks = {}, {}, {}, {}
    with progress_bar("M-lab CIFAR-10", len(cases)) as advance:
        for name, case in cases.items():
            task = tasks[name] = stacks(case.sizes, case.missing)
            measures = found[name] = Measures(task.train.X, task.train.Y, moments(epochs))
            started = time.process_time()
            models[name] = _network(epochs, depth, case.learned).fit(
                task.train.X, task.train.Y, watch=measures
            )
            seconds[name] = time.process_time() - started
            advance()
    for name, measures in found.items():
        yield f"{name}. {tasks[name].said()}"
        yield lines(
            f"{name}: all measures, on a logarithmic axis", measures.epochs, measures.curves(),
            x_label="epochs", y_label="measure", logarithmic=True,
        )  # fmt: skip
        yield falls(measures.curves())
    yield _decoders(tasks, models)
    for name, model in models.items():
        parts = tasks[name].train, tasks[name].test
        right = [100 * model.score(part.X, part.Y) for part in parts]
        yield (
            f"{name}: {seconds[name] / 60:.1f} minutes of one core, {n_learnt(model):,} "
            f"parameters, the best label is right for {right[0]:.1f} % of the training and "
            f"{right[1]:.1f} % of the test samples."
        )


def _decoders(tasks: dict[str, Stacks], models: dict[str, Any]) -> Table:
    """All methods, for all test samples and by the number of labels."""
    rows: list[list[Cell]] = []
    for name, model in models.items():
        task, sizes = tasks[name], np.diff(tasks[name].test.Y.indptr)
        for method, answer in answers(model, task).items():
            row: list[Cell] = [f"{name}, {method}"]
            for score in MEASURES.values():
                row.append(Value(100 * score(task.test.Y, answer.sets), digits=1))
            for m in (1, 2):
                chosen = sizes == m
                f1 = MEASURES["F1, all pairs"](task.test.Y[chosen], answer.sets[chosen])
                row.append(Value(100 * f1, digits=1))
            rows.append(row)
    columns = ["last layer, method", *MEASURES, *(f"F1, {m} label(s)" for m in (1, 2))]
    return Table(f"On the test part, in %; {', '.join(METHODS)} decode features", columns, rows)


def stacks(sizes: Sizes, missing: Sequence[tuple[int, int]] = ()) -> Stacks:
    """Stacks of CIFAR images; no original is in more than one part.

    Label sets that training samples miss are in the other parts, which are balanced.
    """
    train, test = cifar.images(_PER_CLASS["train"])
    half = len(train[1]) * 3 // 4
    parts = [(train[0][:half], train[1][:half]), (train[0][half:], train[1][half:]), test]
    fewer = {m: max(1, int(np.max(n)) // 2) for m, n in sizes.items()}
    made = [
        stack_images(*part, size, shift=_SHIFT, shrink=_SHRINK, random_state=seed, missing=left_out)
        for seed, (part, size, left_out) in enumerate(
            zip(parts, (sizes, fewer, fewer), (missing, (), ()), strict=True)
        )
    ]
    return Stacks("CIFAR-10", *made)


def _network(epochs: int, depth: int, learned: bool) -> NeuralClassifier:
    return NeuralClassifier(
        blueprint(ResNet, depth=depth), blueprint(EtfHead, learned=learned, **_PENALTIES),
        epochs=epochs, learning_rate=3e-3, batch_size=64, n_jobs=1, verbose=False,
        recipe=NetworkRecipe(weight_decay=0.05, validation_fraction=0.0),
    )  # fmt: skip
