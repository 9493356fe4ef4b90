"""What the metrics take: relevant labels and answers, brought to one shape."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen.base import TopK
from umpteen.errors import LabelsError, LabelsShapeError, ParameterError
from umpteen.validation import check_k, check_labels, is_single_label

FloatArray: TypeAlias = npt.NDArray[np.float64]
Ks: TypeAlias = "int | Sequence[int] | npt.NDArray[np.integer]"
Value: TypeAlias = Any  # a float where k is a number, a FloatArray where it is a sequence


def check_ks(k: Any) -> list[int]:
    """Return `k`, a number or a sequence of numbers, as a list.

    >>> check_ks(5), check_ks((1, 3, 5))
    ([5], [1, 3, 5])
    """
    if not isinstance(k, Iterable) or isinstance(k, str):
        return [check_k(k)]
    ks = [check_k(one) for one in k]
    if not ks:
        raise ParameterError("k is empty: use one number or several, such as k=(1, 3, 5)")
    return ks


def at_each(k: Ks, metric: Callable[[int], float]) -> Value:
    """Return the metric at `k`: a float for a number, an array for a sequence.

    >>> at_each(3, lambda k: k / 10), at_each([1, 3], lambda k: k / 10)
    (0.3, array([0.1, 0.3]))
    """
    values = np.array([metric(one) for one in check_ks(k)], dtype=np.float64)
    return values if isinstance(k, Iterable) else float(values[0])


def n_answers(top: Any) -> int:
    """Return how many answers per sample `top` has at the most, but at least 1."""
    if sparse.issparse(top):
        scores: Any = top
        return max(int(np.diff(scores.tocsr().indptr).max(initial=0)), 1)
    return max(top.k, 1) if isinstance(top, TopK) else 1


def check_answers(top: Any, k: int) -> TopK:
    """Return the first `k` answers per sample, of a `TopK` or a sparse matrix of scores.

    Fewer where there are no more labels: an id beyond the number of places tells that there are.
    """
    if sparse.issparse(top):
        return TopK.from_csr(top, k)
    if not isinstance(top, TopK):
        raise LabelsError(
            f"top is a {type(top).__name__}; expected what predict_topk answers (a TopK), "
            "or a sparse matrix of scores"
        )
    if top.k < k and top.labels.max(initial=-1) >= top.k:
        raise ParameterError(
            f"k={k} is not possible: the answers have only {top.k} labels per sample; "
            f"predict with k={k} or more, or use a smaller k here"
        )
    return top.first(k)


def check_relevant(Y: Any, top: TopK, n_labels: int | None = None) -> csr_matrix:
    """Return `Y` as CSR that belongs to `top`: a row for each answer, a column for each label.

    An indicator brings its own number of columns, so an answer outside of it is an error. Ids
    bring none: they are taken as wide as the answers.
    """
    relevant = check_labels(Y)
    if relevant.shape[0] != len(top):
        raise LabelsShapeError(
            f"Y has {relevant.shape[0]:,} rows but top has {len(top):,} answers; "
            "row i of both belongs to the same sample"
        )
    largest = int(top.labels.max(initial=-1))
    if written_as_ids(Y):
        return widened(relevant, max(largest + 1, n_labels or 0))
    if largest >= relevant.shape[1]:
        raise LabelsShapeError(
            f"top holds the label id {largest:,}, but Y has {relevant.shape[1]:,} columns; "
            "each column is a label, in the same order as in training"
        )
    return relevant


def check_pair(
    first: Any, second: Any, names: tuple[str, str] = ("Y", "predicted")
) -> tuple[csr_matrix, csr_matrix]:
    """Return two sets of labels as CSR over the same labels, as wide as ids need."""
    matrices = [check_labels(Y, name=name) for Y, name in zip((first, second), names, strict=True)]
    n_labels = max(matrix.shape[1] for matrix in matrices)
    for Y, matrix, name in zip((first, second), matrices, names, strict=True):
        if matrix.shape[1] < n_labels and not written_as_ids(Y):
            raise LabelsShapeError(
                f"{name} has {matrix.shape[1]:,} columns, but the labels of {' and '.join(names)} "
                f"are {n_labels:,}; each column is a label, the same in both"
            )
    return widened(matrices[0], n_labels), widened(matrices[1], n_labels)


def written_as_ids(Y: Any) -> bool:
    """Return whether `Y` lists label ids, and so does not say how many labels there are."""
    return is_single_label(Y) or isinstance(Y, list | tuple)


def widened(matrix: csr_matrix, n_labels: int) -> csr_matrix:
    """Return the matrix with empty columns added up to `n_labels`."""
    shape = (matrix.shape[0], max(n_labels, matrix.shape[1]))
    return csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=shape)
