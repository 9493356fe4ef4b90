"""Table 1's label powersets in small: which garments are on a stack of images?"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.drawing import lines
from papers.multihead.settings import QUICK, STACKS, Training
from papers.multihead.tasks import Floats, Task, repeated
from papers.sets import available, train_and_test
from umpteen.multihead import CascadeHead, LabelCode, ProductHead, SamplingHead
from umpteen.neural import Blueprint, Conv, FullHead, blueprint

_SET, _DIGITS = "images/fashion-mnist", "images/mnist"
N_SAMPLES = 24_000
CONV_WIDTH = 8
_ALONE = [5, 2]  # heads for the kind of one image
_N_TEST = 5_000


def sections(quick: bool) -> list[Section]:
    """One section, if the images are there."""
    if not available([_SET]):
        return []
    n_seeds, n_samples = (1, 1_000) if quick else (3, N_SAMPLES)
    chosen = dict.fromkeys((1, 2, 3), QUICK) if quick else STACKS
    sizes = list(chosen)
    return [
        Section(
            "Table 1 and Figure 6, combinations of labels as classes",
            "where classes are combinations of labels (of VOC's 20 labels 2^20), MHP, MHC and MHS "
            "are as good as asking for each label (80.13, 80.25 and 80.34 against 79.82 %), which "
            "a full layer cannot do; all heads must be right, so errors add up.",
            f"Fashion-MNIST, {n_samples:,} stacks of {sizes[0]} to {sizes[-1]} images, each a "
            "channel of 14 x 14 pixels; the class is the list of their kinds, so there are "
            f"{10 ** sizes[0]:,} to {10 ** sizes[-1]:,} classes; and single images of MNIST, with "
            f"the same settings. A Conv; seeds: {n_seeds}. "
            + " ".join(f"Stacks of {size}: {each.in_words()}." for size, each in chosen.items()),
            partial(_stacks, n_samples, chosen, n_seeds),
        )
    ]


def _stacks(n_samples: int, chosen: Mapping[int, Training], n_seeds: int) -> Iterator[Block]:
    found: dict[str, dict[str, Floats]] = {}
    cases = [(f"{10**size:,}", _SET, size) for size in chosen]
    for label, name, size in [("10 (MNIST)", _DIGITS, 1), *cases]:
        if available([name]):
            found[label] = _trained(stacks(size, n_samples, name), size, chosen[size], n_seeds)
    names = list(found[cases[0][0]])
    rows: list[list[Cell]] = [
        [label, *(over_seeds(runs[name]) for name in names)] for label, runs in found.items()
    ]
    yield Table("All images of a stack right, in % of test stacks", ["classes", *names], rows)
    curves = {name: [float(found[label][name].mean()) for label, _, _ in cases] for name in names}
    places = [label for label, _, _ in cases]
    yield lines("Accuracy", places, curves, x_label="classes", y_label="accuracy, %")
    yield (
        "MHP has one head per image, so that all samples of a kind teach its digit, whatever lies "
        "beside it. With labels in random order (shuffled) a digit means nothing: the difference "
        "is what MHP owes to classes that are combinations. A full layer knows of none."
    )


def _trained(task: Task, size: int, training: Training, n_seeds: int) -> dict[str, Floats]:
    encoder = blueprint(Conv, dim=training.dim, width=CONV_WIDTH)
    made = {
        name: partial(training.network, head, encoder=encoder, recipe__all_labels=True)
        for name, head in heads(size).items()
    }
    return repeated(task, made, n_seeds)


def heads(size: int) -> dict[str, Blueprint]:
    """MHP with a digit for each image, the others with two heads; a single image has {5;2}."""
    n_labels = 10**size
    digits = LabelCode(n_labels, [10] * size if size > 1 else _ALONE)
    groups = [n_labels // 10, 10] if size > 1 else _ALONE
    return {
        "full": blueprint(FullHead),
        "MHP": blueprint(ProductHead, code=digits),
        "MHP, shuffled": blueprint(ProductHead, code=digits.shuffled(0)),
        "MHC": blueprint(CascadeHead, lengths=groups, hidden=128),
        "MHS": blueprint(SamplingHead, lengths=groups, sparse=True),
    }


def stacks(size: int, n_samples: int, name: str = _SET) -> Task:
    """Stacks of random images; those to test on are of the set's own test images."""
    train_part, test_part = train_and_test(name)
    random = np.random.default_rng(size)
    train = _drawn(train_part, size, n_samples, random)
    test = _drawn(test_part, size, min(n_samples, _N_TEST), random)
    return Task(f"stacks of {size}", *train, *test)


def _drawn(
    part: Any, size: int, n_samples: int, random: np.random.Generator
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    images, kinds = np.asarray(part.X, np.float32).reshape(-1, 28, 28), part.y
    chosen = random.integers(len(images), size=(n_samples, size))
    chosen[-1] = np.argmax(kinds)  # the last class exists: heads are made for all classes
    halved = images[chosen].reshape(n_samples, size, 14, 2, 14, 2).mean(axis=(3, 5))
    return halved, (kinds[chosen] * 10 ** np.arange(size)[::-1]).sum(axis=1)
