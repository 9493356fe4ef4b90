"""How good predicted *sets* of labels are, such as those of `predict`.

`Y` and `predicted` are each what `fit` takes for labels; nothing dense is built. Where a sample
has no label and none is predicted, Jaccard and F1 are 1, as the answer is exactly right
(scikit-learn: `zero_division=1`). Without samples, all is 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from umpteen.errors import LabelsShapeError
from umpteen.metrics.inputs import check_pair
from umpteen.metrics.macro import mean_over_relevant


def subset_accuracy(Y: Any, predicted: Any) -> float:
    """Return the share of samples whose set of labels is exactly right.

    >>> subset_accuracy([[0, 2], [1]], [[0, 2], [1, 2]])
    0.5
    """
    sets = _Overlap.of(Y, predicted)
    return _mean((sets.true == sets.both) & (sets.predicted == sets.both))


def jaccard(Y: Any, predicted: Any) -> float:
    """Return labels in both sets over labels in either, averaged over samples.

    >>> jaccard([[0, 2], [1]], [[0, 2], [1, 2]])
    0.75
    """
    sets = _Overlap.of(Y, predicted)
    return _mean(_share(sets.both, sets.true + sets.predicted - sets.both))


def sample_f1(Y: Any, predicted: Any) -> float:
    """Return F1 of each sample's set, averaged over samples.

    >>> round(sample_f1([[0, 2], [1]], [[0, 2], [1, 2]]), 4)
    0.8333
    """
    sets = _Overlap.of(Y, predicted)
    return _mean(_share(2 * sets.both, sets.true + sets.predicted))


def micro_f1(Y: Any, predicted: Any) -> float:
    """Return F1 over all (sample, label) pairs together: frequent labels count most.

    >>> round(micro_f1([[0, 2], [1]], [[0, 2], [1, 2]]), 4)
    0.8571
    """
    sets = _Overlap.of(Y, predicted)
    if len(sets.both) == 0:
        return 0.0
    return float(_share(2 * sets.both.sum(), sets.true.sum() + sets.predicted.sum()))


def macro_f1(Y: Any, predicted: Any) -> float:
    """Return F1 of each label, averaged over labels with a relevant sample in `Y`, or 0.

    scikit-learn counts the other labels too, as zeros, unless `labels=` leaves them out.

    >>> round(macro_f1([[0, 2], [1]], [[0, 2], [1, 2]]), 4)
    0.8889
    """
    true, guessed = check_sets(Y, predicted)
    per_label = [
        np.bincount(matrix.indices, minlength=true.shape[1])
        for matrix in (_intersection(true, guessed), true, guessed)
    ]
    both, n_true, n_guessed = per_label
    return mean_over_relevant(2 * both, n_true + n_guessed, n_true)


def hamming_loss(Y: Any, predicted: Any) -> float:
    """Return the share of all (sample, label) decisions that are wrong; lower is better.

    >>> round(hamming_loss([[0, 2], [1]], [[0, 2], [1, 2]]), 4)
    0.1667
    """
    true, guessed = check_sets(Y, predicted)
    wrong = true.nnz + guessed.nnz - 2 * _intersection(true, guessed).nnz
    return wrong / max(true.shape[0] * true.shape[1], 1)


def check_sets(Y: Any, predicted: Any) -> tuple[csr_matrix, csr_matrix]:
    """Return both as CSR of the same shape."""
    true, guessed = check_pair(Y, predicted)
    if true.shape[0] != guessed.shape[0]:
        raise LabelsShapeError(
            f"Y has {true.shape[0]:,} rows but predicted has {guessed.shape[0]:,}; "
            "row i of both belongs to the same sample"
        )
    return true, guessed


@dataclass(frozen=True, eq=False)
class _Overlap:
    """Per sample: how many labels are true, predicted, and both."""

    true: Any
    predicted: Any
    both: Any

    @classmethod
    def of(cls, Y: Any, predicted: Any) -> "_Overlap":
        true, guessed = check_sets(Y, predicted)
        matrices = (true, guessed, _intersection(true, guessed))
        return cls(*(np.diff(matrix.indptr).astype(np.int64) for matrix in matrices))


def _intersection(true: csr_matrix, guessed: csr_matrix) -> csr_matrix:
    return csr_matrix(true.multiply(guessed))


def _share(part: Any, whole: Any) -> Any:
    return np.where(whole == 0, 1.0, part / np.maximum(whole, 1))


def _mean(values: Any) -> float:
    return float(values.mean()) if len(values) else 0.0
