"""Module II: for each sample, labels that it could be mistaken for."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.metrics.hits import found_in
from umpteen.search import LabelIndex
from umpteen.sharding import OnRows, Sharded, over_blocks

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]
_BLOCK = 1024
_SPARE = 20  # labels looked up beyond those wanted, as some are the sample's own


def hard_negatives(
    indexes: list[LabelIndex], bags: FloatArray, Y: csr_matrix, n_each: int,
    n_jobs: int | None = -1,
) -> IntArray:  # fmt: skip
    """Return (n, indexes * n_each): the nearest labels by each index that are not relevant.

    -1 where there are fewer, perhaps for a sample with more than 20 labels, and where an index
    gives what another gave already.

    >>> index = LabelIndex([[1, 0], [0.8, 0.6], [0, 1]])
    >>> vectors = np.array([[1, 0], [0.6, 0.8]], np.float32)
    >>> hard_negatives([index, index], vectors, csr_matrix([[1, 0, 0], [0, 0, 1]]), 1)
    array([[-1,  1],
           [-1,  1]], dtype=int32)
    """
    n_own = min(int(np.diff(Y.indptr).max(initial=0)), _SPARE)
    shared = (Sharded(bags, Y), indexes, n_each, n_own)
    return np.concatenate(over_blocks(_block, len(bags), _BLOCK, shared, n_jobs=n_jobs))


def distinct(labels: IntArray) -> IntArray:
    """Return each row in order of ids, with duplicates replaced by -1.

    >>> distinct(np.array([[2, 0, 2, -1]], np.int32))
    array([[-1,  0, -1,  2]], dtype=int32)
    """
    ordered = np.sort(labels, axis=1)
    ordered[:, :-1][ordered[:, :-1] == ordered[:, 1:]] = -1
    return ordered


def first_chosen(labels: IntArray, chosen: npt.NDArray[np.bool_], n: int) -> IntArray:
    """Return the first n of each row that are chosen; -1 where there are fewer.

    >>> first_chosen(np.array([[5, 6, 7]]), np.array([[False, True, True]]), 3)
    array([[ 6,  7, -1]])
    """
    order = np.argsort(~chosen, axis=1, kind="stable")[:, :n]
    return np.take_along_axis(np.where(chosen, labels, -1), order, axis=1)


def _block(
    task: OnRows, sharded: Sharded, indexes: list[LabelIndex], n_each: int, n_own: int
) -> IntArray:
    (bags, Y), rows = sharded.at(task.rows)
    own, queries, n = Y[rows.start : rows.stop], bags[rows.start : rows.stop], n_each + n_own
    near = [_without_own(index.topk(queries, n).padded(n).labels, own, n_each) for index in indexes]
    return distinct(np.concatenate(near, axis=1))


def _without_own(labels: IntArray, Y: csr_matrix, n: int) -> IntArray:
    """Return the first n labels of each row that are not relevant."""
    return first_chosen(labels, (labels >= 0) & ~found_in(Y, labels), n)
