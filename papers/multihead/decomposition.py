"""Section 4.4, Tables 7 and 9 and Figure 9: which digits should a label have?"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.multihead.labels import PAPER_GROUP, cascade
from papers.multihead.settings import CLASSES, LABELS, QUICK, Training
from papers.multihead.tasks import (
    Task,
    classes_task,
    repeated,
    texts_task,
)
from papers.sets import available
from umpteen.multihead import CascadeHead, LabelCode, ProductHead, SamplingHead
from umpteen.neural import Blueprint, blueprint

# Table 9 of the paper, CIFAR-100 {20; 5}, 400 epochs, and Eurlex-4K: clustered, random.
_PAPER_CLASSES = {"MHP": (74.84, 74.29), "MHC": (77.36, 77.45), "MHS": (78.51, 78.56)}
_PAPER_EURLEX = (86.00, 85.95)


def sections(quick: bool) -> list[Section]:
    """Random against clustered labels, and number and length of heads."""
    training = QUICK if quick else CLASSES["pydocs"]
    tags = QUICK if quick else LABELS["debian-tags"]
    what = f"TF-IDF of single words, a Bag; {training.in_words()}"
    return [
        Section(
            "Table 9 and Figure 9, random against clustered labels",
            "labels with random digits (LRD) are as good as clustered ones (LC) when the network "
            "is large enough; a small one loses 2 to 4 points.",
            f"pydocs with one class per sample, and debian-tags; {what}; one seed, for features "
            "of two sizes. Labels are clustered by the centroids of their training samples.",
            partial(_orders, quick, training, tags),
        ),
        Section(
            "Section 4.4 and Table 7, number and length of heads",
            "the fewer heads the better; parallel heads (MHP) should be equally long, those of a "
            "cascade (MHC) the longest first. The confusion degree (Equation 15) says so.",
            f"pydocs with one class per sample; {what}; one seed. Paper: "
            "CIFAR-100 with {20;5}, {10;10} and {4;5;5}.",
            partial(_lengths, quick, training),
        ),
    ]


def _orders(quick: bool, training: Training, tags: Training) -> Iterator[Block]:
    dims = (8, training.dim)
    rows: list[list[Cell]] = []
    task = classes_task("pydocs", quick)
    for dim in dims:
        for name, make in _heads(task.n_labels).items():
            paper = _PAPER_CLASSES[name] if dim == dims[-1] else (None, None)
            rows.append(_compared(task, f"{name}, {dim} features", replace(training, dim=dim),
                                  *make, paper))  # fmt: skip
    for name in available(["debian-tags"]):
        task = texts_task(name, quick)
        code = LabelCode(task.n_labels, [ceil(task.n_labels / PAPER_GROUP), PAPER_GROUP])
        make_cascade = partial(cascade, task.n_labels, PAPER_GROUP)
        for dim in dims:
            paper = _PAPER_EURLEX if dim == dims[-1] else (None, None)
            rows.append(_compared(task, f"{name}: MHC, {dim} features", replace(tags, dim=dim),
                                  code, make_cascade, paper))  # fmt: skip
    yield Table(
        "Accuracy, or precision at 1 for debian-tags (paper: Eurlex-4K), in % on the test part",
        ["head", "clustered (LC)", "random (LRD)", "LC minus LRD"],
        rows,
    )


def _heads(n_labels: int) -> dict[str, tuple[LabelCode, Callable[..., Blueprint]]]:
    descending = LabelCode.descending(n_labels)
    return {
        "MHP": (LabelCode.balanced(n_labels), partial(blueprint, ProductHead)),
        "MHC": (descending, partial(blueprint, CascadeHead, sparse=True)),
        "MHS": (descending, partial(blueprint, SamplingHead, sparse=True)),
    }


def _compared(
    task: Task,
    label: str,
    training: Training,
    code: LabelCode,
    make: Callable[..., Blueprint],
    paper: tuple[float | None, ...],
) -> list[Cell]:
    orders = {"LC": code.clustered(centroids(task), 0), "LRD": code.shuffled(0)}
    models: dict[str, Callable[[int], Any]] = {
        name: partial(training.network, make(code=ordered)) for name, ordered in orders.items()
    }
    found = repeated(task, models, 1)
    at_1 = {name: runs[:, 0] for name, runs in found.items()}
    both = [over_seeds(at_1[name], printed) for name, printed in zip(at_1, paper, strict=True)]
    return [label, *both, over_seeds(at_1["LC"] - at_1["LRD"])]


def centroids(task: Task) -> csr_matrix:
    """The sum of each label's training samples, of length 1."""
    Y = indicator(task.Y, task.n_labels) if task.Y.ndim == 1 else task.Y
    return csr_matrix(normalize(Y.T @ task.X))


def indicator(classes: npt.NDArray[np.integer], n_classes: int) -> csr_matrix:
    """One class per sample as a sparse table.

    >>> indicator(np.array([1, 0]), 2).toarray()
    array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    n = len(classes)
    return csr_matrix((np.ones(n, np.float32), (np.arange(n), classes)), (n, n_classes))


def _lengths(quick: bool, training: Training) -> Iterator[Block]:
    task = classes_task("pydocs", quick)
    yield task.in_words() + "."
    cases = _cases(task.n_labels)
    models = {
        name: partial(training.network, blueprint(head, code=code, **options))
        for name, (head, code, options, _) in cases.items()
    }
    found = repeated(task, models, 1)
    rows: list[list[Cell]] = []
    for name, (head, code, options, paper) in cases.items():
        parallel = head is ProductHead
        made = head(training.dim, code, **options)
        confused = f"{code.confusion_degree(parallel=parallel):.3g}"
        rows.append([name, f"{made.n_parameters:,}", confused, over_seeds(found[name], paper)])
    columns = ["heads", "parameters of the head", "confusion degree", "accuracy"]
    yield Table("Accuracy in % on the test part", columns, rows)


def _cases(n: int) -> dict[str, tuple[Any, LabelCode, dict[str, Any], float | None]]:
    """Heads by their lengths, with the paper's number of a similar shape."""
    long, short = LabelCode.descending(n), LabelCode.balanced(n)
    ascending = LabelCode(n, long.lengths[::-1])
    product = [
        (LabelCode.balanced(n, 2), 75.92), (long, 74.84), (LabelCode.balanced(n, 3), 74.53),
        (LabelCode.balanced(n, 4), None),
    ]  # fmt: skip
    cascades = [(long, 77.36), (short, 76.26), (ascending, None),
                (LabelCode.descending(n, 3), 76.11)]  # fmt: skip
    return {f"MHP {_said(code)}": (ProductHead, code, {}, paper) for code, paper in product} | {
        f"MHC {_said(code)}": (CascadeHead, code, {"sparse": True, "loss": "softmax"}, paper)
        for code, paper in cascades
    }


def _said(code: LabelCode) -> str:
    return "{" + ";".join(map(str, code.lengths)) + "}"
