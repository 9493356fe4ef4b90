"""Adding, removing and refitting labels of a label tree that keeps its shape."""

from abc import abstractmethod
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state

from umpteen.base import (
    AddsLabels,
    ExtremeClassifier,
    HasRecipe,
    KnowsFeatures,
    RefitsLabels,
    RemovesLabels,
)
from umpteen.errors import LabelsError, ParameterError
from umpteen.linear.editing import without_labels
from umpteen.linear.label_texts import LabelTexts
from umpteen.linear.search import Search
from umpteen.linear.training import Solver, learn_trust
from umpteen.linear.tree import Tree
from umpteen.linear.updating import add_labels, labels_by_feature, refit_labels
from umpteen.storage import Given, NotEmpty
from umpteen.validation import as_csr, check_features, check_label, check_labels

_ANY_NUMBER = 2**31 - 1


class LabelChanges(
    HasRecipe, AddsLabels, RemovesLabels, RefitsLabels, KnowsFeatures, ExtremeClassifier
):
    """The methods of `LabelTree` that change labels after `fit`."""

    trees_: Annotated[list[Annotated[Tree, Given("features", "labels")]], NotEmpty()]
    newcomers_: Annotated[Tree, Given("features", "labels")] | None
    label_texts_: Annotated[LabelTexts, Given("features", "labels")] | None

    n_jobs: int | None
    random_state: Any

    def add_labels(
        self, X: Any = None, Y: Any = None, label_features: Any = None, *,
        negative_weight: float = 1.0,
    ) -> Self:  # fmt: skip
        """Add labels without learning the others again.

        `Y` has a column for each new label; they are numbered from `n_labels_` on. Samples without
        any of them are negatives: give some of the training samples. Each negative counts
        `negative_weight` times.

        The tree stays as it is, so all other labels keep their scores, to the bit. New labels are
        not part of the tree, which was grown without them; every sample is scored for each of them
        instead. So after some hundreds of new labels, prediction takes twice as long. `fit` puts
        them into the tree.
        """
        X, Y = self._check_more(X, Y)
        _check_weight(negative_weight)
        n_with = np.bincount(Y.indices, minlength=Y.shape[1])
        if (n_with == X.shape[0]).any():
            raise LabelsError(
                f"new label {np.argmax(n_with)} is on every sample, so it has no negatives: "
                "give samples without it as well, such as some of the training samples"
            )
        texts = self._texts_with(label_features, n_with)
        first, n_labels = self.n_labels_, self.n_labels_ + Y.shape[1]
        placed = csr_matrix((Y.data, Y.indices + first, Y.indptr), shape=(X.shape[0], n_labels))
        new = np.flatnonzero(n_with) + first
        newcomers = self._with_newcomers(self.newcomers_, X, placed, new, negative_weight)
        self.__dict__.update(
            newcomers_=newcomers, label_texts_=texts, n_labels_=n_labels
        )  # one step
        return self

    def remove_labels(self, labels: Any) -> Self:
        """Remove labels: they are not predicted any more. The ids of the others stay."""
        ids, newcomers, texts = self._check_ids(labels), self.newcomers_, self.label_texts_
        trees = [without_labels(tree, ids, self.n_features_in_) for tree in self.trees_]
        if newcomers is not None:
            newcomers = without_labels(newcomers, ids, self.n_features_in_)
        texts = None if texts is None else texts.without(ids)
        self.__dict__.update(trees_=trees, newcomers_=newcomers, label_texts_=texts)  # one step
        return self

    def refit_labels(self, X: Any, Y: Any, labels: Any, *, nodes_too: bool = True) -> Self:
        """Learn the classifiers of some labels, and of the nodes above them, again.

        These classifiers are trained from scratch: `X` and `Y` must have all samples that they
        should learn from, old and new. If you have only some of the old samples, leave the nodes
        above as they are (`nodes_too=False`), because other labels depend on them as well. Labels
        without samples so far get their first classifier.

        Scores of other labels below the same nodes change, too. With `nodes_too=False`, other
        labels keep their scores to the bit, except if a new weight is larger than all weights that
        are stored together with it: these are then rounded to 1/32,767 of the largest.
        """
        ids = self._check_ids(labels)
        X, Y = self._check_more(X, Y, self.n_labels_)
        trees = [self._refitted(tree, X, Y, ids, nodes_too) for tree in self.trees_]
        newcomers = self.newcomers_
        if newcomers is not None:
            newcomers = self._refitted(newcomers, X, Y, ids, nodes_too)
        placed = [tree.hierarchy.label_order for tree in (*trees, newcomers) if tree is not None]
        lost = np.setdiff1d(np.intersect1d(ids, Y.indices), np.concatenate(placed))
        if len(lost):
            newcomers = self._with_newcomers(newcomers, X, Y, lost, 1.0)
        self.__dict__.update(trees_=trees, newcomers_=newcomers)  # one step
        return self

    def labels_with(self, X: Any) -> csr_matrix:
        """Return `(n, n_labels)` with a 1 for each label that knows a feature of the sample.

        They have a weight for it, or it is in their text and texts count.

        >>> from umpteen.linear import LabelTree
        >>> X = csr_matrix([[1, 0, 0], [0, 1, 0]], dtype=float)
        >>> LabelTree().fit(X, [[0], [1]]).labels_with([[0, 0, 1]]).nnz
        0
        """
        X = as_csr(self._check_predict(X))
        asked = np.unique(X.indices)
        with_feature = [
            labels_by_feature(tree, asked, self.n_labels_) for tree in self._all_trees()
        ]
        texts = self.label_texts_
        if texts is not None and texts.is_used:
            with_feature.append(csr_matrix(abs(texts.features[:, asked].T)))
        found = csr_matrix(sum(abs(X[:, asked]) @ labels for labels in with_feature))
        found.eliminate_zeros()
        found.data[:] = 1
        return found

    def _with_newcomers(
        self,
        newcomers: Tree | None,
        X: csr_matrix,
        Y: csr_matrix,
        labels: npt.NDArray[np.integer],
        negative_weight: float,
    ) -> Tree:
        ids = labels.astype(np.int32)
        solver = self._solver(self._first_seed(), negative_weight)
        tree = add_labels(newcomers, X, csr_matrix(Y[:, ids]), ids, solver, self.n_jobs)
        if self._used_recipe().trust:
            learn_trust(tree, X, Y, self._search(), ids, negative_weight)
        return tree

    def _refitted(
        self, tree: Tree, X: csr_matrix, Y: csr_matrix, ids: npt.NDArray[np.int32], nodes_too: bool
    ) -> Tree:
        own = np.intersect1d(ids, tree.hierarchy.label_order)
        if len(own) == 0:
            return tree
        solver, search = self._solver(self._first_seed()), self._search()
        new = refit_labels(tree, X, Y, own, solver, search, nodes_too=nodes_too)
        if self._used_recipe().trust:
            learn_trust(new, X, Y, self._search(), own)
        return new

    def _all_trees(self) -> list[Tree]:
        return self.trees_ if self.newcomers_ is None else [*self.trees_, self.newcomers_]

    def _check_more(
        self, X: Any, Y: Any, n_labels: int | None = None
    ) -> tuple[csr_matrix, csr_matrix]:
        X = as_csr(self._check_predict(X))
        Y = check_labels(Y, n_samples=X.shape[0], n_labels=n_labels)
        if Y.nnz == 0:
            raise LabelsError("Y has no relevant label at all; there is nothing to learn")
        return X, Y

    def _check_ids(self, labels: Any) -> npt.NDArray[np.int32]:
        self._check_fitted()
        ids = np.atleast_1d(np.asarray(labels)).tolist()
        return np.array([check_label(label, self.n_labels_) for label in ids], np.int32)

    def _first_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(_ANY_NUMBER))

    def _texts_with(self, label_features: Any, counts: npt.NDArray[np.int64]) -> LabelTexts | None:
        """The texts of the labels with those of new ones; without a text they are empty."""
        if self.label_texts_ is None:
            return None
        if label_features is None:
            return self.label_texts_.extended(counts)
        more = check_features(label_features, n_features=self.n_features_in_, name="label_features")
        return self.label_texts_.extended(counts, LabelTexts.of(more, counts))

    @abstractmethod
    def _search(self, beam_width: int | None = None) -> Search:
        """How trees are searched."""

    @abstractmethod
    def _solver(self, seed: int, negative_weight: float = 1.0) -> Solver:
        """How classifiers are trained."""


def _check_weight(weight: Any) -> None:
    if not isinstance(weight, int | float | np.number) or not 0 < weight < np.inf:
        raise ParameterError(
            f"negative_weight={weight!r} is not possible: expected a number above 0, how "
            "many times each negative counts"
        )
