"""The measures for texts with labels of a real data set."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix

from umpteen.collapse import EtfHead
from umpteen.neural import Bag, NeuralClassifier, recipe
from umpteen.reproduce.collapse.courses import falls
from umpteen.reproduce.collapse.runs import Course, moments
from umpteen.reproduce.drawing import lines
from umpteen.reproduce.multihead.runs import Task, available, texts_task
from umpteen.reproduce.parts import Part, Section

_SETS = ("cooking", "debian-tags")
_DIM = 64
_LEAST_ALONE = 10  # samples with a label alone, for it to be measured


def sections(quick: bool) -> list[Section]:
    """One section, if there are texts."""
    there = available(_SETS)
    if not there:
        return []
    epochs = 3 if quick else 40
    return [
        Section(
            f"Beyond the paper: all measures on texts, {there[0]}",
            "the paper has images only; nothing in its theory asks for them.",
            f"{there[0]}: the labels that at least {_LEAST_ALONE} samples have alone, and the "
            "samples that have no other, of up to three labels. TF-IDF of single words, a Bag with "
            f"{_DIM} features; learned last layer; {epochs} epochs.",
            partial(_course, there[0], quick, epochs),
        )
    ]


def small_part(
    task: Task, least: int = _LEAST_ALONE, most: int = 3
) -> tuple[csr_matrix, csr_matrix]:
    """Samples of one to `most` labels, all of which stand alone in at least `least` samples."""
    sizes = np.diff(task.Y.indptr)
    alone = np.asarray(task.Y[sizes == 1].sum(axis=0)).ravel()
    kept = np.flatnonzero(alone >= least)
    Y = csr_matrix(task.Y[:, kept])
    rows = np.flatnonzero((Y.getnnz(axis=1) == sizes) & (sizes >= 1) & (sizes <= most))
    return csr_matrix(task.X[rows]), csr_matrix(Y[rows])


def _course(name: str, quick: bool, epochs: int) -> Iterator[Part]:
    X, Y = small_part(texts_task(name, quick))
    of = np.bincount(np.diff(Y.indptr)).tolist()
    by_number = ", ".join(f"{count:,} with {m}" for m, count in enumerate(of) if count)
    yield f"{Y.shape[0]:,} samples ({by_number} label(s)), {Y.shape[1]} labels."
    course = Course(X, Y, moments(epochs))
    model = NeuralClassifier(
        encoder=recipe(Bag, dim=_DIM), head=recipe(EtfHead, learned=True, feature_penalty=0.05),
        epochs=epochs, learning_rate=1e-2, weight_decay=0.5, batch_size=64,
        validation_fraction=0.0, random_state=0, n_jobs=1, verbose=False,
    ).fit(X, Y, watch=course)  # fmt: skip
    yield lines(
        "All measures, on a logarithmic axis", course.epochs, course.curves(),
        x_label="epochs", y_label="measure", logarithmic=True,
    )  # fmt: skip
    yield falls(course.curves())
    yield f"At the end, the best label is a right one for {100 * model.score(X, Y):.1f} %."
