"""Several codes for each label, with as many parameters as a tenth of a full layer."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from papers.contents import Block, Cell, Section, Table, Value, over_seeds
from papers.multihead.classes import class_sections
from papers.multihead.settings import Training, training_of
from papers.multihead.tasks import classes_task, scores
from papers.progress import progress_bar
from umpteen.multihead import LabelCode, ProductHead
from umpteen.neural import Blueprint, FullHead, NeuralClassifier, blueprint

_SHARE = 10  # a full layer has so many times the parameters
_N_LONG = 3  # codes with a long first head
_LONGER = 3  # times as many epochs: each digit is shared by many classes, and takes longer to learn


def sections(quick: bool) -> list[Section]:
    """A section for each data set of classes."""
    return class_sections(
        "Several codes for each label",
        "the paper has one code. Here, each label has several, all but the first in another "
        "random order, so that labels which share a digit in one code rarely do in another.",
        "Parameters are those of the last layer, relative to a full one.",
        _compare,
        quick,
    )


@dataclass(frozen=True)
class Try:
    """A head, and how it is trained beside a full layer: factors of the epochs and of the rate."""

    head: Blueprint
    epochs: int = 1
    rate: float = 1.0


def heads(n_labels: int) -> dict[str, Try]:
    """A full layer, one code, several summed products, several codes."""
    per_code = sum(LabelCode.balanced(n_labels).lengths)
    at_a_tenth = max(2, n_labels // (_SHARE * per_code))
    several = blueprint(ProductHead, n_codes=at_a_tenth)
    longer = f"{_LONGER} times the epochs"
    return {
        "full": Try(blueprint(FullHead)),
        "one code": Try(blueprint(ProductHead)),
        f"{at_a_tenth} products summed (Equation 16)": Try(
            blueprint(ProductHead, n_groups=at_a_tenth)
        ),
        f"{at_a_tenth} codes": Try(several),
        f"{at_a_tenth} codes, {longer}": Try(several, _LONGER),
        f"{_N_LONG} codes with a long first head, {longer}, half the rate": Try(
            blueprint(ProductHead, lengths=long_first(n_labels), n_codes=_N_LONG), _LONGER, 0.5
        ),
    }


def _compare(name: str, quick: bool, n_seeds: int) -> Iterator[Block]:
    task, training = classes_task(name, quick), training_of(name, quick)
    yield task.in_words() + "."
    made = heads(task.n_labels)
    found: dict[str, list[tuple[float, float]]] = {label: [] for label in made}
    sizes: dict[str, int] = {}
    with progress_bar(name, n_seeds * len(made)) as advance:
        for seed in range(n_seeds):
            for label, each in made.items():
                model = _network(training, each, seed).fit(task.X, task.Y)
                validation = 100 * max(model.history_["score"])
                found[label].append((validation, float(scores(task, model)[0])))
                sizes[label] = n_of_head(model)
                advance()
    full = np.array(found["full"])
    rows: list[list[Cell]] = []
    for label, runs in found.items():
        both = np.array(runs)
        share = Value(100 * sizes[label] / sizes["full"], digits=1)
        differences = (over_seeds(both[:, i] - full[:, i]) for i in (0, 1))
        rows.append([label, share, over_seeds(both[:, 1]), *differences])
    columns = ["head", "parameters, %", "test", "validation, minus full", "test, minus full"]
    yield Table("Accuracy in %", columns, rows)
    yield f"Codes with a long first head have heads of {long_first(task.n_labels)}."


def long_first(n_labels: int, n_codes: int = _N_LONG) -> list[int]:
    """Return two lengths, the first as long as a tenth of a full layer allows so many codes.

    >>> long_first(8_998)
    [265, 34]
    """
    room = max(sum(LabelCode.balanced(n_labels).lengths), n_labels // (_SHARE * n_codes))
    return next(
        [first, ceil(n_labels / first)]
        for first in range(room, 0, -1)
        if first + ceil(n_labels / first) <= room
    )


def _network(training: Training, what: Try, seed: int) -> NeuralClassifier:
    rate = what.rate * training.rate(what.head)
    return training.network(
        what.head, seed, epochs=what.epochs * training.epochs, learning_rate=rate
    )


def n_of_head(model: Any) -> int:
    """Return how many weights and biases the last layer has."""
    arrays = model.weights_.items()
    learnt = [each for name, each in arrays if name.startswith("head.") and each.dtype.kind == "f"]
    return sum(array.size for array in learnt)
