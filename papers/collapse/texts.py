"""The measures for texts with labels of a real data set."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.sparse import csr_matrix

from papers.collapse.curves import falls
from papers.collapse.stacks import Measures, moments
from papers.contents import Block, Section
from papers.drawing import lines
from papers.multihead.tasks import Task, texts_task
from papers.sets import available
from umpteen.collapse import EtfHead
from umpteen.neural import Bag, NetworkRecipe, NeuralClassifier, blueprint

_SETS = ("cooking", "debian-tags")
_DIM = 64
_LEAST_ALONE = 20  # samples with a label alone, for it to be measured


def sections(quick: bool) -> list[Section]:
    """One section, if there are texts."""
    there = available(_SETS)
    if not there:
        return []
    epochs = 10 if quick else 100
    return [
        Section(
            f"Beyond the paper: all measures on texts, {there[0]}",
            "the paper has images only; nothing in its theory asks for them.",
            f"{there[0]}: the labels that at least {_LEAST_ALONE} samples (quick: 5) have alone, "
            "and the samples that have no other, of up to three labels. TF-IDF of single words, "
            f"a Bag of {_DIM} features without ReLU; learned last layer; {epochs} epochs.",
            partial(_curves, there[0], quick, epochs),
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


def balanced_part(X: csr_matrix, Y: csr_matrix) -> tuple[csr_matrix, csr_matrix]:
    """With equally many samples of each label alone: the first ones of each."""
    sizes = np.diff(Y.indptr)
    alone = np.flatnonzero(sizes == 1)
    labels = Y[alone].indices
    least = int(np.bincount(labels).min())
    kept = [alone[labels == label][:least] for label in range(Y.shape[1])]
    rows = np.sort(np.concatenate([*kept, np.flatnonzero(sizes > 1)]))
    return csr_matrix(X[rows]), csr_matrix(Y[rows])


def _curves(name: str, quick: bool, epochs: int) -> Iterator[Block]:
    X, Y = small_part(texts_task(name, quick), 5 if quick else _LEAST_ALONE)
    yield from _curve("As they are", X, Y, epochs)
    yield from _curve("With as many samples of each label alone", *balanced_part(X, Y), epochs)
    yield (
        "The theory wants samples with one label to be balanced, which those of a real set are "
        "not: the second table tells what that changes. It also has fewer samples."
    )


def _curve(caption: str, X: csr_matrix, Y: csr_matrix, epochs: int) -> Iterator[Block]:
    of = np.bincount(np.diff(Y.indptr)).tolist()
    by_number = ", ".join(f"{count:,} with {m}" for m, count in enumerate(of) if count)
    yield f"{caption}: {Y.shape[0]:,} samples ({by_number} label(s)), {Y.shape[1]} labels."
    measures = Measures(X, Y, moments(epochs))
    head = blueprint(EtfHead, learned=True, feature_penalty=0.05, weight_penalty=0.01)
    model = NeuralClassifier(
        encoder=blueprint(Bag, dim=_DIM, linear=True), head=head, epochs=epochs, learning_rate=1e-2,
        batch_size=64, recipe=NetworkRecipe(validation_fraction=0.0), n_jobs=1, verbose=False,
    ).fit(X, Y, watch=measures)  # fmt: skip
    yield lines(
        f"{caption}: all measures, on a logarithmic axis", measures.epochs, measures.curves(),
        x_label="epochs", y_label="measure", logarithmic=True,
    )  # fmt: skip
    yield falls(measures.curves())
    yield f"At the end, the best label is a right one for {100 * model.score(X, Y):.1f} %."
