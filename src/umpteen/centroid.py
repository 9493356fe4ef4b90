"""The baseline: a label is the mean of its samples, and the nearest labels win."""

from typing import Annotated, Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen.base import ExtremeClassifier, TopK
from umpteen.kernels.topk import dense_topk, frozen_csr, sparse_topk
from umpteen.parallel import run
from umpteen.progress import Verbose, progress_bar
from umpteen.storage import Shape
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

    centroids_: Annotated[Features, Shape("features", "labels")]

    def __init__(self, *, n_jobs: int | None = -1, verbose: Verbose = "auto") -> None:
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, Y: Any) -> Self:
        """Average the samples of each label; O(stored entries of X x labels per sample)."""
        X, labels = self._check_fit(X, Y)
        centroids = unit_rows(labels.T.tocsr() @ unit_rows(X))
        if sparse.issparse(centroids):
            self.centroids_ = csr_matrix(centroids.T)
        else:
            self.centroids_ = np.ascontiguousarray(centroids.T)
        return self

    def _topk(self, X: Features, k: int) -> TopK:
        block_of = self._sparse_block if sparse.issparse(self.centroids_) else self._dense_block
        with progress_bar("Predicting", total=X.shape[0], verbose=self.verbose) as bar:
            answers = run(
                lambda rows: block_of(unit_rows(X[rows]), k),
                self._blocks(X.shape[0]),
                n_jobs=self.n_jobs,
                done=lambda rows: bar.advance(rows.stop - rows.start),
            )
        return TopK.concatenate(answers)

    def _blocks(self, n_samples: int) -> list[slice]:
        size = _SPARSE_BLOCK_ROWS
        if not sparse.issparse(self.centroids_):
            size = min(max(_DENSE_BLOCK_SCORES // self.n_labels_, 1), 1024)
        starts = range(0, max(n_samples, 1), size)  # no rows are one empty block
        return [slice(start, min(start + size, n_samples)) for start in starts]

    def _sparse_block(self, X: Features, k: int) -> TopK:
        samples, postings = frozen_csr(csr_matrix(X)), frozen_csr(csr_matrix(self.centroids_))
        return TopK(*sparse_topk(samples, postings, self.n_labels_, k))

    def _dense_block(self, X: Features, k: int) -> TopK:
        return TopK(*dense_topk(np.ascontiguousarray(X @ self.centroids_), k))
