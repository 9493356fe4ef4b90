"""Hierarchies of labels: which labels are broader than which."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from umpteen.errors import LabelsError, LabelsShapeError
from umpteen.validation.labels import check_labels, is_list_of_lists

_SHOWN = 5


def check_parents(parents: Any) -> csr_matrix:
    """Return `parents` as canonical CSR of float32 ones `(n_labels, n_labels)`, without cycles.

    Row i marks the direct parents of label i: a sparse or dense indicator, or a list of lists of
    label ids. A label may have several parents, or none.

    >>> check_parents([[], [0], [0, 1]]).toarray()
    array([[0., 0., 0.],
           [1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    width = len(parents) if is_list_of_lists(parents) else None
    matrix = check_labels(parents, n_labels=width, name="parents")
    if matrix.shape[0] != matrix.shape[1]:
        raise LabelsShapeError(
            f"parents has shape {matrix.shape}; expected a row and a column for each label, "
            "non-zero where the column is a direct parent of the row"
        )
    in_cycle = np.flatnonzero(cyclic(matrix))
    if len(in_cycle):
        shown = ", ".join(map(str, in_cycle[:_SHOWN])) + (", ..." if len(in_cycle) > _SHOWN else "")
        raise LabelsError(
            f"parents has a cycle: {len(in_cycle):,} labels are ancestors of themselves ({shown}); "
            "remove one of the links between them"
        )
    return matrix


def cyclic(parents: csr_matrix) -> npt.NDArray[np.bool_]:
    """Return which labels are ancestors of themselves.

    >>> cyclic(csr_matrix([[0, 1, 0], [1, 0, 0], [1, 0, 0]]))
    array([ True,  True, False])
    """
    if not parents.nnz:
        return np.zeros(parents.shape[0], bool)
    _, component = connected_components(parents, directed=True, connection="strong")
    return np.asarray((np.bincount(component)[component] > 1) | (parents.diagonal() != 0))
