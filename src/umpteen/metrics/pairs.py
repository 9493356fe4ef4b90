"""Answers that must not count: pairs of a sample and a label that are one and the same thing."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import coo_matrix

from umpteen.base import TopK
from umpteen.errors import LabelsError
from umpteen.metrics.hits import found_in
from umpteen.metrics.inputs import widened
from umpteen.validation import check_labels


def filter_pairs(top: TopK, pairs: Any) -> TopK:
    """Return the answers without the given (sample, label) pairs; those behind them move up.

    If documents are labels, too, a document should not be an answer to itself, nor to the document
    that it was made from: remove such pairs before measuring. `pairs` are rows (sample, label), or
    a sparse matrix, non-zero where the label is to be removed.

    >>> filter_pairs(TopK([[2, 0, 1]], [[0.9, 0.5, 0.1]]), [(0, 2)]).labels
    array([[ 0,  1, -1]], dtype=int32)
    """
    if not isinstance(top, TopK):
        raise LabelsError(
            f"top is a {type(top).__name__}; expected a TopK: TopK.from_csr(scores, k) makes one"
        )
    unwanted = check_labels(
        pairs if sparse.issparse(pairs) else _pair_matrix(pairs, len(top)),
        n_samples=len(top),
        name="pairs",
    )
    gone = found_in(widened(unwanted, int(top.labels.max(initial=-1)) + 1), top.labels)
    labels = np.where(gone, np.int32(-1), top.labels)
    scores = np.where(gone, np.float32(-np.inf), top.scores)
    rows = np.flatnonzero(gone.any(axis=1))
    order = np.argsort(gone[rows], axis=1, kind="stable")
    labels[rows] = np.take_along_axis(labels[rows], order, axis=1)
    scores[rows] = np.take_along_axis(scores[rows], order, axis=1)
    return TopK(labels, scores)


def _pair_matrix(pairs: Any, n_samples: int) -> coo_matrix:
    array = np.asarray(pairs) if np.size(pairs) else np.empty((0, 2), np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise LabelsError(
            f"pairs have shape {array.shape} and dtype {array.dtype}; expected whole numbers, "
            "one row (sample, label) per pair, or a sparse matrix"
        )
    samples, labels = array.T
    if array.min(initial=0) < 0 or samples.max(initial=-1) >= n_samples:
        raise LabelsError(
            f"pairs name samples {samples.min():,} to {samples.max():,} and labels from "
            f"{labels.min():,}; samples are 0 to {n_samples - 1:,}, labels start at 0"
        )
    shape = (n_samples, int(labels.max(initial=-1)) + 1)
    return coo_matrix((np.ones(len(array), np.float32), (samples, labels)), shape=shape)
