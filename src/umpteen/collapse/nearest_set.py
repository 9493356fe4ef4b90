"""Label sets by the nearest mean: the paper's decoder, and beyond it sets never seen."""

from numbers import Integral
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from umpteen.collapse.nearest_mean import NearestMean
from umpteen.collapse.synthesis import TagAverages
from umpteen.errors import LabelsError, NotFittedError
from umpteen.metrics.label_sets import LabelSets, dense_features
from umpteen.storage import Given, NotEmpty, Shape, Within, storable
from umpteen.validation import check_parameters


def _from_1(parameters: dict[str, Any], state: dict[str, Any]) -> None:
    if "means_" in state:
        state["means_"] = state["means_"].astype(np.float64)


@storable(version=2, upgrades={1: _from_1})
class NearestSet(BaseEstimator):
    """The label set whose mean is nearest to a sample's features (the paper's ONN).

    `fit` averages the features of each label set of the training samples, whatever its number of
    labels; `predict` returns the set with the nearest mean. This needs no thresholds and no further
    training, but it can only predict sets that were seen in training.

    With `unseen`, it can predict any label set with as many labels as some training sample has.
    Means of collapsed features are sums of their labels' vectors, so the means of unseen sets can
    be computed (`averages_`). Branch and bound finds the nearest of all sets. Some samples of seen
    sets then get an unseen set, so use this only if unseen sets are common.

    Parameters
    ----------
    unseen : whether sets that no training sample has can be predicted.
    max_steps : maximum number of search steps per sample. Then the best set found so far is
        returned; `search` tells for which samples.

    >>> features = np.array([[2.0, 0, 0], [0, 2, 0], [0, 0, 2], [1, 1, 0], [1, 0, 1]])
    >>> labels = [[0], [1], [2], [0, 1], [0, 2]]
    >>> new = np.array([[0, 1.1, 1.0]])
    >>> NearestSet().fit(features, labels).predict(new).indices.tolist() == [1, 2]
    False
    >>> NearestSet(unseen=True).fit(features, labels).predict(new).indices
    array([1, 2], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "unseen": ["boolean"],
        "max_steps": [Interval(Integral, 1, None, closed="left")],
    }

    sets_: Annotated[csr_matrix, Shape("sets", "labels")]
    means_: Annotated[  # of features in float32
        npt.NDArray[np.float64], Shape("sets", "dim"), NotEmpty(), Within(-1e39, 1e39)
    ]
    counts_: Annotated[npt.NDArray[np.int64], Shape("sets")]
    averages_: Annotated[TagAverages, Given("labels", "dim")] | None

    def __init__(self, *, unseen: bool = False, max_steps: int = 10_000) -> None:
        self.unseen = unseen
        self.max_steps = max_steps

    def fit(self, features: Any, Y: Any) -> Self:
        """Average the features `(n, d)` of each label set; one pass over them."""
        check_parameters(self)
        self.__dict__.pop("_search", None)
        sets = LabelSets.of(features, Y)
        if not len(sets.counts):
            raise LabelsError("there are no samples: at least one label set is needed")
        self.sets_ = sets.sets
        self.means_ = sets.means
        self.counts_ = sets.counts
        self.averages_ = TagAverages.of(sets) if self.unseen and sets.sets.nnz else None
        return self

    def predict(self, features: Any) -> csr_matrix:
        """Return the label set of each sample, an indicator `(n, n_labels)`."""
        return self.search(features)[0]

    def search(self, features: Any) -> tuple[csr_matrix, npt.NDArray[np.bool_]]:
        """Return the label sets, and whether each is proven to be the nearest of all; `(n,)`."""
        if not hasattr(self, "means_"):
            raise NotFittedError("this NearestSet was not fitted yet: call fit first")
        checked = dense_features(features, n_features=self.means_.shape[1])
        which, distances = self.nearest(checked)
        answers = csr_matrix(self.sets_[which])
        if self.averages_ is None:
            return answers, np.ones(len(checked), np.bool_)
        found, proven = self.averages_.search(checked, distances, self.max_steps)
        better = found[:, 0] >= 0
        kept = sparse.diags_array((~better).astype(np.float32)) @ answers
        answers = csr_matrix(kept + _indicator(found, self.sets_.shape[1]), dtype=np.float32)
        answers.eliminate_zeros()
        answers.sort_indices()
        return answers, proven

    def nearest(
        self, features: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the row of `sets_` with the nearest mean and the squared distance; both `(n,)`.

        Distances are computed in float64; ties go to the set that came first in training.
        """
        return self._nearest_mean().search(features)

    def _nearest_mean(self) -> NearestMean:
        """Return the search structure; it is built on first use and kept, because that is slow."""
        if "_search" not in self.__dict__:
            self._search = NearestMean.of(self.means_)
        return self._search

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_search", None)  # it can be built from `means_`
        return state


def _indicator(found: npt.NDArray[np.int32], n_labels: int) -> csr_matrix:
    """Return the indicator of rows of labels, filled up with -1."""
    rows, places = np.nonzero(found >= 0)
    ones = np.ones(len(rows), np.float32)
    return csr_matrix((ones, (rows, found[rows, places])), shape=(len(found), n_labels))
