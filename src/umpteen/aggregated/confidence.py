"""Labels of new groups, and how sure it is whose they are."""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.aggregated.assignment import handed_out
from umpteen.aggregated.presence import understood
from umpteen.aggregated.problem import Problem


def assign_new(
    problem: Problem, scores: csr_matrix, samples_per_label: str, least: float
) -> csr_matrix:
    """Return confidences of the labels that samples get by `scores` of all labels of their groups.

    A label whose scores in a group are all below `least` goes to nobody there. Where only presence
    is known, a label goes to one sample of a group: nothing is known of how often it would occur.
    """
    share = "one" if samples_per_label == "estimate" else understood(problem, samples_per_label)
    given = handed_out(problem, scores, share)
    keys = _keys(scores)
    positions = np.searchsorted(keys, _keys(given))
    values = _odds(scores.data)
    confidence = np.zeros(scores.nnz, np.float32)
    for members, labels, counts in _groups(problem):
        entries = np.searchsorted(keys, members[:, None] * np.int64(scores.shape[1]) + labels)
        total, best = values[entries].sum(axis=0), scores.data[entries].max(axis=0)
        n_given = np.ones_like(counts) if share == "one" else np.minimum(counts, len(members))
        own = np.minimum(1, n_given * values[entries] / np.maximum(total, 1e-30))
        own[:, best < least] = 0
        confidence[entries] = np.maximum(confidence[entries], own)
    found = csr_matrix((confidence[positions], given.indices, given.indptr), shape=given.shape)
    found.eliminate_zeros()
    return found


def _groups(problem: Problem):  # type: ignore[no-untyped-def]
    groups, labels = problem.groups, problem.group_labels
    for j in range(problem.n_groups):
        own = slice(labels.indptr[j], labels.indptr[j + 1])
        members = groups.indices[groups.indptr[j] : groups.indptr[j + 1]]
        yield members, labels.indices[own], labels.data[own]


def _keys(pairs: csr_matrix) -> npt.NDArray[np.int64]:
    rows = np.repeat(np.arange(pairs.shape[0], dtype=np.int64), np.diff(pairs.indptr))
    return rows * pairs.shape[1] + pairs.indices


def _odds(scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Scores as they are if none is negative, otherwise their exponentials."""
    return scores if scores.min(initial=0) >= 0 else np.exp(scores - scores.max())
