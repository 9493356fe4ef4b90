"""The baseline: a label is the mean of its samples, and the nearest labels win."""

from typing import Annotated, Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen import scratch
from umpteen.base import ExtremeClassifier, TopK
from umpteen.kernels.topk import dense_topk, frozen_csr, sparse_topk
from umpteen.parallel import one_thread_each
from umpteen.progress import Verbose, progress_bar
from umpteen.sharding import OnRows, Sharded, over_blocks
from umpteen.storage import Shape, Within
from umpteen.validation import N_JOBS, VERBOSE, Features, unit_rows

_SPARSE_BLOCK_ROWS = 256
_DENSE_BLOCK_SCORES = 2**22  # 16 MB per thread


class NearestCentroid(ExtremeClassifier):
    """A baseline that predicts the labels with the nearest centroids.

    A label's centroid is the mean of its samples, each scaled to length 1; it is scaled to length
    1, too. The score of a label is the cosine of sample and centroid. Prediction compares a sample
    with all labels, without approximation. Training takes a few seconds; any other method should
    be better than this one.

    Labels with a cosine of exactly 0 are not returned: labels without samples, and labels that
    share no feature with the sample. So a sample without features gets no labels.

    `centroids_` has a column for each label, `(n_features, n_labels)`: sparse if `fit` was given
    sparse `X`, else dense.

    >>> X = csr_matrix([[1, 1, 0], [1, 0, 0], [0, 0, 2]])
    >>> top = NearestCentroid().fit(X, [[0], [0, 1], [2]]).predict_topk(X, k=2)
    >>> top.names(["fruit", "apple", "stone"])[:2]
    [[('fruit', 0.92388), ('apple', 0.707107)], [('apple', 1.0), ('fruit', 0.92388)]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n_jobs": N_JOBS, "verbose": VERBOSE}

    centroids_: Annotated[Features, Shape("features", "labels"), Within(-2, 2)]  # of length 1

    def __init__(self, *, n_jobs: int | None = -1, verbose: Verbose = "auto") -> None:
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, Y: Any) -> Self:
        """Average the samples of each label; O(stored entries of X x labels per sample)."""
        X, labels = self._check_fit(X, Y)
        centroids = unit_rows(labels.T.tocsr() @ scratch.unit_rows(X))
        if sparse.issparse(centroids):
            self.centroids_ = csr_matrix(centroids.T)
        else:
            self.centroids_ = np.ascontiguousarray(centroids.T)
        return self

    def _topk(self, X: Features, k: int) -> TopK:
        if X.shape[0] == 0:
            return TopK(np.zeros((0, k), np.int32), np.zeros((0, k), np.float32))
        size = _SPARSE_BLOCK_ROWS
        if not sparse.issparse(self.centroids_):
            size = min(max(_DENSE_BLOCK_SCORES // self.n_labels_, 1), 1024)
        with progress_bar("Predicting", total=X.shape[0], verbose=self.verbose) as bar:
            answers = over_blocks(
                _nearest, X.shape[0], size, (Sharded(X), self.centroids_, k), n_jobs=self.n_jobs,
                done=lambda task: bar.advance(len(task.rows)),
            )  # fmt: skip
        return TopK.concatenate(answers)


def _nearest(task: OnRows, sharded: Sharded, centroids: Features, k: int) -> TopK:
    """Return the nearest centroids of some samples."""
    (X,), places = sharded.at(task.rows)
    units = unit_rows(X[places.start : places.stop])
    if sparse.issparse(centroids):
        postings = frozen_csr(csr_matrix(centroids))
        return TopK(*sparse_topk(frozen_csr(csr_matrix(units)), postings, centroids.shape[1], k))
    with one_thread_each:
        scores = np.ascontiguousarray(units @ centroids)
    return TopK(*dense_topk(scores, k))
