"""Section 3: what the tree costs and how good a model it is, by the number of classes."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from papers.adversarial.hierarchical import Samples, hierarchical
from papers.contents import Block, Cell, Section, Table, Value
from papers.drawing import lines
from umpteen.softmax import NoiseTree

_FULL, _QUICK = (256, 1_024, 4_096, 16_384, 65_536), (64, 256)
_PER_CLASS, _N_FEATURES, _N_VALIDATION = 5, 64, 5_000
_SETTINGS: dict[str, dict[str, Any]] = {
    "alternating, 0.1": {"regularizer": 0.1},
    "frozen split, 0.1": {"regularizer": 0.1, "max_rounds": 1},
    "alternating, auto": {"regularizer": "auto"},
    "frozen split, auto": {"regularizer": "auto", "max_rounds": 1},
}


def sections(quick: bool) -> list[Section]:
    """Time and likelihood against the number of classes."""
    return [
        Section(
            "Section 3, the tree",
            "it is fitted greedily, by alternating Newton ascent with a discrete step that sends "
            "classes to the better side, in little time.",
            f"Made-up classes in a hidden hierarchy, {_PER_CLASS} training samples each, "
            f"{_N_FEATURES} features of which the tree sees 16 principal components; likelihood "
            f"is the mean over {_N_VALIDATION:,} other samples. Frozen keeps the first split, as "
            "the authors' code happens to do; 0.1 is the paper's regulariser.",
            partial(_measure, _QUICK if quick else _FULL),
        )
    ]


def _measure(sizes: tuple[int, ...]) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    curves: dict[str, list[float]] = {name: [] for name in _SETTINGS}
    for n_classes in sizes:
        train, validation = hierarchical(
            n_classes, _N_FEATURES, _PER_CLASS * n_classes, _N_VALIDATION, seed=1
        )
        for name, setting in _SETTINGS.items():
            tree, seconds = _fitted(train, n_classes, setting)
            unseen = _likelihood(tree, validation)
            curves[name].append(unseen)
            rows.append([
                f"{n_classes:,}, {name}", Value(seconds), Value(tree.log_likelihood_, digits=3),
                Value(unseen, digits=3), Value(float(tree.n_rounds_.mean())),
                int(tree.n_rounds_.max()),
            ])  # fmt: skip
    columns = [
        "classes, setting",
        "seconds",
        "likelihood, train",
        "validation",
        "rounds, mean",
        "most",
    ]
    yield Table("Mean log-likelihood of a sample's class, and rounds of a node", columns, rows)
    yield lines(
        "Log-likelihood of validation samples", [f"{size:,}" for size in sizes], curves,
        x_label="classes", y_label="log-likelihood",
    )  # fmt: skip


def _fitted(train: Samples, n_classes: int, setting: dict[str, Any]) -> tuple[NoiseTree, float]:
    NoiseTree(**setting, verbose=False).fit(train.X[:50], train.y[:50])  # compiles
    began = time.perf_counter()
    tree = NoiseTree(**setting, verbose=False).fit(train.X, train.y, n_classes)
    return tree, time.perf_counter() - began


def _likelihood(tree: NoiseTree, samples: Samples) -> float:
    return float(tree.log_prob(samples.X, samples.y).mean())
