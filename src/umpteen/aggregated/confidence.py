"""Assignment of the labels of new groups, with confidences."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.aggregated.assignment import handed_out
from umpteen.aggregated.presence import understood
from umpteen.aggregated.problem import Problem

_SMALLEST = 1e-6  # confidence of a sample that gets a label
_LARGEST = 1e38  # score; those of a damaged model may be infinite


def assign_new(
    problem: Problem, scores: csr_matrix, samples_per_label: str, least: float
) -> csr_matrix:
    """Return confidences of the labels that samples get by `scores` of all labels of their groups.

    A label is left out of a group if all its scores there are below `least`. If only presence is
    known, a label is assigned to one sample of a group, because a few new groups do not tell how
    often it occurs.
    """
    share = "one" if samples_per_label == "estimate" else understood(problem, samples_per_label)
    given = handed_out(problem, scores, share)
    confidences = _confidences(problem, scores, share, least)
    values = confidences[np.searchsorted(_keys(scores), _keys(given))]
    found = csr_matrix((values, given.indices, given.indptr), shape=given.shape)
    found.eliminate_zeros()
    return found


def _confidences(
    problem: Problem, scores: csr_matrix, share: str, least: float
) -> npt.NDArray[np.float32]:
    """Each score's share of its group's, times the samples that get the label; the best group's."""
    finite = np.nan_to_num(scores.data, posinf=_LARGEST, neginf=-_LARGEST).astype(np.float64)
    keys, odds = _keys(scores), _odds(finite)
    found = np.zeros(scores.nnz)
    groups, labels = problem.groups, problem.group_labels
    for j in range(problem.n_groups):
        members = groups.indices[groups.indptr[j] : groups.indptr[j + 1]].astype(np.int64)
        own = slice(labels.indptr[j], labels.indptr[j + 1])
        entries = np.searchsorted(keys, members[:, None] * scores.shape[1] + labels.indices[own])
        n_given = labels.data[own] if share == "count" else 1
        total = odds[entries].sum(axis=0)
        shares = np.where(
            total > 0, odds[entries] / np.where(total > 0, total, 1), 1 / len(members)
        )
        shares = np.where(n_given < len(members), np.clip(n_given * shares, _SMALLEST, 1), 1)
        is_some = finite[entries].max(axis=0) >= least
        found[entries] = np.maximum(found[entries], shares * is_some)
    return found.astype(np.float32)


def _keys(pairs: csr_matrix) -> npt.NDArray[np.int64]:
    rows = np.repeat(np.arange(pairs.shape[0], dtype=np.int64), np.diff(pairs.indptr))
    return rows * pairs.shape[1] + pairs.indices


def _odds(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Scores as they are if none is negative, otherwise their exponentials."""
    return scores if scores.min(initial=0) >= 0 else np.exp(scores - scores.max())
