"""Labels that training never saw, added by their texts alone."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, diags

from papers.contents import Block, Cell, Section, Table, Value
from papers.siamese.tasks import DEPTHS, Task, available, task
from umpteen import LabelTree, TopK
from umpteen.metrics import ndcg_at_k, precision_at_k, propensity, psp_at_k, recall_at_k
from umpteen.siamese import SiameseRecipe, SiameseXML

_SETS = ("debian-deps", "wordnet-ancestors")
_HIDDEN = 10  # one label in so many
_RECALLS = (5, 10, 50)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Hidden:
    """A task without some labels, which come last in all matrices."""

    task: Task  # labels the learned ones, then the new ones; test samples that have a new one
    n_learned: int
    everyone: Task  # the same with all test samples

    @property
    def learned(self) -> csr_matrix:
        """What may be learned from."""
        return csr_matrix(self.task.Y[:, : self.n_learned])

    @property
    def wanted(self) -> csr_matrix:
        """Of the test split, in columns of all labels: the new ones only."""
        return _only(self.task.Y_test, np.arange(self.task.Y_test.shape[1]) >= self.n_learned)


def sections(quick: bool) -> list[Section]:
    """One section."""
    sets = available(_SETS[1:] if quick else _SETS)
    return [
        Section(
            "New labels by their texts alone",
            "labels are embedded by their texts, so that new ones need no training (the supplement "
            "has no number for it).",
            f"{', '.join(sets)}; a tenth of the labels is hidden from training and then added by "
            "add_labels. Measured on test samples that have a hidden label, on these labels alone.",
            partial(_measured, sets, quick),
        )
    ]


def hidden(chosen: Task, seed: int = 0) -> Hidden:
    """One label in ten is hidden; samples that have no other stay, without labels."""
    n_labels = chosen.Y.shape[1]
    order = np.random.default_rng(seed).permutation(n_labels)
    n_learned = n_labels - n_labels // _HIDDEN
    kept = np.concatenate([np.sort(order[:n_learned]), np.sort(order[n_learned:])])
    asked = np.flatnonzero(chosen.Y_test[:, kept[n_learned:]].getnnz(axis=1))
    ordered = replace(
        chosen,
        Y=csr_matrix(chosen.Y[:, kept]),
        Y_test=csr_matrix(chosen.Y_test[:, kept]),
        label_features=chosen.label_features[kept],
    )
    with_new = replace(ordered, X_test=ordered.X_test[asked], Y_test=ordered.Y_test[asked])
    return Hidden(with_new, n_learned, ordered)


def untrained(token_vectors: Any = None) -> SiameseXML:
    """Cosines to texts, by vectors of words that are random, or stay as they are given."""
    texts_only = SiameseRecipe(modules=(), weights="fixed", alpha=0)
    dim = 512 if token_vectors is None else token_vectors.shape[1]
    return SiameseXML(epochs=0, dim=dim, recipe=texts_only, random_state=0, verbose=False)


def answers(case: Hidden, siamese: Any, tree: Any, k: int) -> dict[str, TopK]:
    """Return answers of three models to samples with new labels, which a tree cannot give.

    The models are SiameseXML, the same without training, and the tree.
    """
    chosen, n_learned = case.task, case.n_learned
    texts = chosen.label_features
    siamese.fit(chosen.X, case.learned, label_features=texts[:n_learned]).add_labels(
        label_features=texts[n_learned:]
    )
    among_all = siamese.predict_topk(chosen.X_test, k)
    among_new = siamese.remove_labels(np.arange(n_learned)).predict_topk(chosen.X_test, k)
    tree.fit(chosen.X, case.learned)
    by_text = untrained().fit(chosen.X, case.learned, label_features=texts[:n_learned])
    by_text.add_labels(label_features=texts[n_learned:])
    return {
        "SiameseXML, among all labels": among_all,
        "SiameseXML, among the new ones": among_new,
        "the same without any training, among all labels": by_text.predict_topk(chosen.X_test, k),
        "LabelTree": tree.predict_topk(chosen.X_test, k),
    }


def scores(case: Hidden, top: TopK) -> Floats:
    """Recall and propensity-scored precision of new labels, in %."""
    chances = propensity(case.task.Y)
    return 100 * np.array([
        *recall_at_k(case.wanted, top, _RECALLS), *psp_at_k(case.wanted, top, DEPTHS, chances),
    ])  # fmt: skip


@dataclass(frozen=True)
class Price:
    """What labels with samples have lost; all figures in %.

    Those of learned labels count hits of these only, on test samples that have one.
    """

    precision: float  # at 1, of all labels
    learned_precision: float  # at 1
    learned_ndcg: float  # at 5

    @classmethod
    def of(cls, case: Hidden, top: TopK) -> "Price":
        """Return the figures of answers to all test samples."""
        Y = case.everyone.Y_test
        learned = _only(Y, np.arange(Y.shape[1]) < case.n_learned)
        rows = np.flatnonzero(learned.getnnz(axis=1))
        answers, expected = TopK(top.labels[rows], top.scores[rows]), csr_matrix(learned[rows])
        found = (
            precision_at_k(Y, top, 1), precision_at_k(expected, answers, 1),
            ndcg_at_k(expected, answers, 5),
        )  # fmt: skip
        return cls(*(100 * float(value) for value in found))


def _only(Y: csr_matrix, kept: npt.NDArray[np.bool_]) -> csr_matrix:
    """Return the same shape without the entries of other columns."""
    chosen = csr_matrix(Y @ diags(kept.astype(np.float32)))
    chosen.eliminate_zeros()
    return chosen


def _measured(sets: list[str], quick: bool) -> Iterator[Block]:
    small: dict[str, Any] = {"dim": 64, "epochs": 3, "recipe__refine_epochs": 2} if quick else {}
    for name in sets:
        case = hidden(task(name, quick))
        siamese = SiameseXML(random_state=0, verbose=False).set_params(**small)
        tops = answers(case, siamese, LabelTree(random_state=0, verbose=False), max(_RECALLS))
        rows: list[list[Cell]] = [
            [label, *(Value(float(score)) for score in scores(case, top))]
            for label, top in tops.items()
        ]
        columns = [f"recall@{k}" for k in _RECALLS] + [f"PSP@{k}" for k in DEPTHS]
        n_new = case.task.Y.shape[1] - case.n_learned
        yield Table(
            f"{name}: {n_new:,} new labels in addition to {case.n_learned:,}; "
            f"{case.task.X_test.shape[0]:,} test samples; in %",
            ["model", *columns],
            rows,
        )
