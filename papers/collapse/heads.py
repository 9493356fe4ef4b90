"""Table 2: a fixed simplex and as many features as labels, against a learned last layer."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from papers.collapse.stacks import (
    Floats,
    Sizes,
    Stacks,
    Training,
    available,
    stacks,
)
from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.progress import progress_bar
from umpteen.collapse import NearestSet
from umpteen.metrics import subset_accuracy

_WIDE = 64  # features of the learned layer
# Table 2 of the paper, ResNet-18: learned, and fixed with d = K.
_PAPER_IOU = {"MNIST": (99.5, 99.4)}
_PAPER_SAVED = 20.7


def sections(quick: bool) -> list[Section]:
    """A section for each set of images."""
    n, seeds = (30, 1) if quick else (300, 3)
    sizes: Sizes = {1: n, 2: n // 5}
    # smaller penalties than elsewhere: the softmax of the right labels, the IoU, comes near to 1
    training = Training(12 if quick else 25, feature_penalty=0.005, weight_penalty=0.001)
    return [
        Section(
            f"Table 2, learned against fixed last layer: {name}",
            "a fixed simplex with d = K features is as good as a learned classifier, and saves up "
            "to 20 % of the parameters (the paper's are of ResNet-18; most of them come from the "
            "narrower layer before, not from the classifier).",
            f"{name}, {sizes} samples for each set of so many labels; {training.in_words()} unless "
            f"d is given; seeds: {seeds}.",
            partial(_compare, name, sizes, training, seeds),
        )
        for name in (available()[:1] if quick else available())
    ]


def _compare(name: str, sizes: Sizes, training: Training, n_seeds: int) -> Iterator[Block]:
    wide, narrow = replace(training, dim=_WIDE), replace(training, dim=10)
    kinds = {
        f"learned, d = {_WIDE}": (wide, True),
        "learned, d = K = 10": (narrow, True),
        "fixed, d = K = 10": (narrow, False),
    }
    found: dict[str, list[Floats]] = {kind: [] for kind in kinds}
    learnt: dict[str, int] = {}
    with progress_bar(name, n_seeds * len(kinds)) as advance:
        for seed in range(n_seeds):
            task = stacks(name, sizes, seed=seed)
            for kind, (head, learned) in kinds.items():
                model = head.network(seed, learned=learned, decoder=NearestSet())
                found[kind].append(_scores(model.fit(task.train.X, task.train.Y), task))
                learnt[kind] = n_learnt(model)
                advance()
    yield task.in_words()
    first, *_, last = kinds
    rows: list[list[Cell]] = []
    for kind, runs in found.items():
        printed = dict(zip((first, last), _PAPER_IOU.get(name, ()), strict=False)).get(kind)
        saved = 100 * (1 - learnt[kind] / learnt[first])
        values = np.array(runs)
        rows.append([
            kind, over_seeds(values[:, 0], printed), *map(over_seeds, values.T[1:]),
            f"{learnt[kind]:,}", over_seeds([saved], _PAPER_SAVED if kind == last else None, 1),
        ])  # fmt: skip
    columns = ["last layer", "IoU, %", "subset accuracy, %", "best label right, %",
               "parameters", "saved, %"]  # fmt: skip
    yield Table("On the test part; sets by the nearest mean", columns, rows)
    gaps = np.mean(found[last], axis=0) - np.mean(found[first], axis=0)
    yield (
        f"Fixed minus learned, in points: IoU {gaps[0]:+.2f}, subset accuracy {gaps[1]:+.2f}, best "
        f"label {gaps[2]:+.2f}. IoU is what the paper's code calls so: the share of a softmax that "
        "the right labels have."
    )


def _scores(model: Any, task: Stacks) -> Floats:
    """IoU, subset accuracy and precision at 1, in %."""
    test = task.test
    return 100 * np.array([
        softmax_share(model, test), subset_accuracy(test.Y, model.predict(test.X)),
        model.score(test.X, test.Y),
    ])  # fmt: skip


def softmax_share(model: Any, test: Any) -> float:
    """How much of the softmax over all labels the right ones have, on average."""
    top = model.predict_topk(test.X, k=model.n_labels_)
    weights = np.exp(top.scores - top.scores[:, :1])
    right = np.take_along_axis(test.Y.toarray(), top.labels, axis=1) > 0
    return float(((weights * right).sum(axis=1) / weights.sum(axis=1)).mean())


def n_learnt(model: Any) -> int:
    """Numbers that are learned: all weights but a fixed last layer, no statistics of batch norm."""
    sizes = {
        name: array.size
        for name, array in model.weights_.items()
        if not name.endswith(("running_mean", "running_var", "num_batches_tracked"))
    }
    learned = model.head_.options.get("learned", False)
    return sum(size for name, size in sizes.items() if learned or name != "head.weight")
