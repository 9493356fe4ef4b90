"""Table 7: one class per sample, each head against a full layer."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.multihead.classes import class_sections
from papers.multihead.settings import training_of
from papers.multihead.tasks import Floats, classes_task, repeated
from umpteen.multihead import CascadeHead, LabelCode, ProductHead, SamplingHead
from umpteen.neural import Blueprint, FullHead, blueprint
from umpteen.softmax import AdversarialHead

# Table 7 of the paper, CIFAR-100 after 400 epochs, heads of {20; 5}: below a full layer's 77.70.
PAPER_LOSSES = {"MHP": 74.84 - 77.70, "MHC": 77.36 - 77.70, "MHS": 78.51 - 77.70}
_SHORT = 5  # labels of a last head, as in {20; 5}
_IMAGENET_LOSSES = {"MHP": 70.34 - 73.16, "MHC": 72.06 - 73.16, "MHS": 73.51 - 73.16}


def sections(quick: bool) -> list[Section]:
    """A section for each data set."""
    return class_sections(
        "Table 7, one class per sample",
        "the heads come near a full layer: MHP about 3 points below, MHC 0.3 to 1.1 points "
        "below, MHS as good or slightly better.",
        "The paper's numbers are of CIFAR-100 and ImageNet.",
        _against_full,
        quick,
    )


def heads(n_labels: int) -> dict[str, Blueprint]:
    """A full layer, and the heads in its place; also with a last head as short as the paper's."""
    short = [-(-n_labels // _SHORT), _SHORT]
    return {
        "full": blueprint(FullHead),
        "MHP": blueprint(ProductHead),
        f"MHP, last head of {_SHORT}": blueprint(ProductHead, lengths=short),
        f"MHP, last head of {_SHORT}, 4 summed": blueprint(ProductHead, lengths=short, n_groups=4),
        "MHC": blueprint(CascadeHead, sparse=True),
        f"MHC, last head of {_SHORT}": blueprint(CascadeHead, lengths=short, sparse=True),
        "MHS": blueprint(SamplingHead, sparse=True),
        "adversarial": blueprint(AdversarialHead, sparse=True),
    }


def _against_full(name: str, quick: bool, n_seeds: int) -> Iterator[Block]:
    task, training = classes_task(name, quick), training_of(name, quick)
    yield task.in_words() + "."
    made: dict[str, Callable[[int], Any]] = {
        label: partial(training.network, head) for label, head in heads(task.n_labels).items()
    }
    found = repeated(task, made, n_seeds)
    yield against_full("Accuracy in % on the test part", found)
    codes = LabelCode.balanced(task.n_labels).lengths, LabelCode.descending(task.n_labels).lengths
    yield (
        f"MHP has heads of {codes[0]}, MHC and MHS of {codes[1]} (groups and their size), if not "
        "said otherwise. 4 summed: the products of 4 such pairs are added up (Equation 16). "
        "adversarial: the head of another paper, which draws its negatives by a model of the data."
    )


def against_full(caption: str, found: dict[str, Floats]) -> Table:
    """Accuracy of each head, and its distance from the full layer's."""
    rows: list[list[Cell]] = []
    for name, runs in found.items():
        distance = runs - found["full"]
        rows.append([
            name, over_seeds(runs), over_seeds(distance, PAPER_LOSSES.get(_kind(name))),
            over_seeds(distance, _IMAGENET_LOSSES.get(_kind(name))),
        ])  # fmt: skip
    columns = ["head", "accuracy", "minus full (paper: CIFAR-100)", "the same (paper: ImageNet)"]
    return Table(caption, columns, rows)


def _kind(name: str) -> str:
    return name.partition(",")[0]
