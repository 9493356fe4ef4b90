"""Beyond the paper: label sets that no training sample had, by the tag-wise average."""

from collections.abc import Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.collapse.stacks import Sizes, Stacks, Training, available, stacks
from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.progress import progress_bar
from umpteen.collapse import NearestSet, OneVsAll
from umpteen.metrics import subset_accuracy

_METHODS: dict[str, Any] = {
    "ONN (NearestSet)": NearestSet(),
    "NearestSet(unseen=True)": NearestSet(unseen=True),
    "OvA, chosen": OneVsAll(),
}


def sections(quick: bool) -> list[Section]:
    """One section, if there are images."""
    there = available()
    if not there:
        return []
    n, seeds = (30, 1) if quick else (300, 3)
    training = Training(12 if quick else 25)
    sizes: Sizes = {1: n, 2: n // 3, 3: n // 10}
    return [
        Section(
            "Beyond the paper: label sets never seen",
            "the nearest of the means seen cannot be one of a set that was never seen: ONN scores "
            "0 there. But the paper's tag-wise average tells where its mean would be.",
            f"{there[0]}, {sizes} samples for each set of so many labels, but a quarter of the "
            "pairs and of the triples, drawn at random, only come up in the test; learned last "
            f"layer; {training.in_words()}; seeds: {seeds}.",
            partial(_compare, there[0], sizes, training, seeds),
        )
    ]


def hidden_sets(n_classes: int, seed: int, share: float = 0.25) -> list[tuple[int, ...]]:
    """A share of all pairs and of all triples, at random.

    >>> len(hidden_sets(4, seed=0, share=0.5))
    5
    """
    random = np.random.default_rng(seed)
    chosen: list[tuple[int, ...]] = []
    for m in (2, 3):
        every = list(combinations(range(n_classes), m))
        rows = random.permutation(len(every))[: round(share * len(every))]
        chosen += [every[row] for row in sorted(rows)]
    return chosen


def _compare(images: str, sizes: Sizes, training: Training, n_seeds: int) -> Iterator[Block]:
    found: dict[str, list[list[float]]] = {name: [] for name in _METHODS}
    with progress_bar("unseen sets", n_seeds) as advance:
        for seed in range(n_seeds):
            missing = hidden_sets(10, seed)
            task = stacks(images, sizes, missing=missing, seed=seed)
            model = training.network(seed).fit(task.train.X, task.train.Y)
            for name, runs in _scores(model, task, missing).items():
                found[name].append(runs)
            advance()
    yield task.in_words()
    rows: list[list[Cell]] = [
        [name, *map(over_seeds, np.transpose(runs))] for name, runs in found.items()
    ]
    columns = ["method", "sets seen", "sets never seen", "pairs never seen", "triples never seen"]
    yield Table("Subset accuracy in % of the test samples", columns, rows)
    yield (
        "One-vs-all can answer with any set, too. The more sets can be answers, the more wrong "
        "ones there are: the first column tells what that costs samples of sets seen."
    )


def _scores(model: Any, task: Stacks, missing: list[tuple[int, ...]]) -> dict[str, list[float]]:
    features, test = model.features(task.train.X), model.features(task.test.X)
    new = is_among(task.test.Y, missing)
    size = np.diff(task.test.Y.indptr)
    masks = [~new, new, new & (size == 2), new & (size == 3)]
    found = {}
    for name, decoder in _METHODS.items():
        validation: dict[str, Any] = (
            {"validation": (model.features(task.dev.X), task.dev.Y)}
            if isinstance(decoder, OneVsAll)
            else {}
        )
        sets = decoder.fit(features, task.train.Y, **validation).predict(test)
        found[name] = [100 * subset_accuracy(task.test.Y[rows], sets[rows]) for rows in masks]
    return found


def is_among(Y: Any, sets: list[tuple[int, ...]]) -> npt.NDArray[np.bool_]:
    """Which rows of an indicator are one of these sets."""
    seen = set(sets)
    return np.array([
        tuple(sorted(Y.indices[start:end].tolist())) in seen
        for start, end in zip(Y.indptr, Y.indptr[1:], strict=False)
    ])  # fmt: skip
