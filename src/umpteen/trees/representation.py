"""What a label looks like: the samples that carry it, its own features, or both."""

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.preprocessing import normalize

from umpteen import parallel
from umpteen.scratch import Rows, gathered_rows
from umpteen.sharding import OnRows, Sharded, stays_here
from umpteen.validation import Features, as_csr

_BLOCK_VALUES = 1 << 22  # of samples that a block of labels adds up


def label_representation(
    X: Features,
    Y: csr_matrix,
    label_features: Features | None = None,
    label_features_weight: float = 0.5,
    *,
    n_jobs: int | None = -1,
) -> csr_matrix:
    """Return a unit row for each label: the mean direction of its samples, or zeros if none.

    With `label_features` the row is a blend, `(1 - weight) * samples + weight * features`; a
    label with only one of the two is represented by that one. The rows of a block of labels are
    made at a time, so that memory is needed for the result and little else.

    >>> label_representation(csr_matrix([[3.0, 0.0], [0.0, 2.0]]), csr_matrix([[1, 1], [0, 1]]))[
    ...     1
    ... ].toarray().round(2)
    array([[0.71, 0.71]], dtype=float32)
    """
    X, features = as_csr(X), None if label_features is None else csr_matrix(label_features)
    tasks = list(_tasks(X, csr_matrix(Y.T), features))
    shared = (Sharded(X), label_features_weight)
    n_values = sum(task.item.n_values for task in tasks)
    blocks = (
        parallel.run_ahead(lambda task: _represented(task, *shared), tasks, n_jobs=n_jobs)
        if stays_here(n_values, len(tasks), n_jobs)
        else parallel.stream(_represented, tasks, shared, n_jobs=n_jobs)
    )
    with closing(blocks):
        return gathered_rows(blocks, X.shape[1])


class _Labels(NamedTuple):
    """Some labels: which samples of the task they have, and their features, if any."""

    members: csr_matrix
    features: csr_matrix | None
    n_values: int


def _tasks(X: csr_matrix, samples_of: csr_matrix, features: csr_matrix | None) -> Iterator[OnRows]:
    """Yield blocks of labels whose samples have about equally many values; at least one."""
    lengths = np.concatenate([[0], np.cumsum(np.diff(X.indptr)[samples_of.indices])])
    ends = lengths[samples_of.indptr]  # values of the samples of all labels before
    n_labels, n_blocks = samples_of.shape[0], 1 + int(ends[-1]) // _BLOCK_VALUES
    inner = np.searchsorted(ends, np.arange(1, n_blocks) * (int(ends[-1]) / n_blocks))
    borders = np.unique([0, *inner, n_labels]).tolist()
    for first, last in pairwise(borders):
        members = samples_of[first:last]
        rows, places = np.unique(members.indices, return_inverse=True)
        members = csr_matrix(
            (members.data, places.astype(np.int32), members.indptr), (last - first, len(rows))
        )
        own = None if features is None else features[first:last]
        yield OnRows(rows.astype(np.int32), _Labels(members, own, int(ends[last] - ends[first])))


def _represented(task: OnRows, sharded: Sharded, weight: float) -> Rows:
    (X,), places = sharded.at(task.rows)
    members, features, _ = task.item
    samples = X[places]
    if samples.shape[0]:  # scikit-learn normalizes at least one row
        samples = normalize(samples, copy=False)
    of_samples = normalize(members @ samples, copy=False)
    if features is None:
        return _canonical(of_samples)
    blend = (1 - weight) * of_samples + weight * normalize(features)
    return _canonical(normalize(blend, copy=False))


def _canonical(rows: csr_matrix) -> Rows:
    rows = csr_matrix(rows, dtype=np.float32)
    rows.sum_duplicates()
    return rows.indptr, rows.indices, rows.data
