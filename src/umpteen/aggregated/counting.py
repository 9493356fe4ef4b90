"""How many samples of a group have a label, if only its presence is known."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.aggregated.problem import Problem
from umpteen.kernels.noisy_or import expected_counts

_LEAST = 1e-4  # of a score; smaller ones are as good as this
_N_LEVELS = 64  # of logarithms of scores
_RIDGE = 0.1  # chosen on validation splits, as are the others (benchmarks/aggregated_choices.py)


def labels_of_others(problem: Problem, seed: int) -> csr_matrix:
    """Return for each sample some labels that it certainly does not have, `(n, n_labels)`.

    They are the labels of the groups of another sample, drawn at random, that are not also
    labels of its own groups.
    """
    own = problem.everything
    another = np.random.default_rng((seed, 2)).permutation(own.shape[0])
    others = csr_matrix(own[another] - own[another].multiply(own))
    others.eliminate_zeros()
    others.sort_indices()
    return others


@dataclass(frozen=True, eq=False)
class PairScores:
    """Scores in (0, 1] of pairs that may be, and of pairs that surely are not, `(n, n_labels)`."""

    candidates: csr_matrix
    others: csr_matrix


def count_by_scores(problem: Problem, scores: PairScores) -> npt.NDArray[np.float32]:
    """Return how many samples of its group each of `problem.group_labels` belongs to.

    This is the expected number under a noisy-or: a label is present in a group if at least one
    sample has it, and the probability of a sample is logistic in the logarithm of its score. The
    slope and the bias of each label maximise the likelihood of its presence in some groups and its
    absence in the others. So a label that solvers recognise in all samples of a cluster gets large
    numbers; if samples have labels at random, the numbers are those of chance. A number is at
    least 1 and at most the size of the group.
    """
    own, others = _by_label(scores.candidates), _by_label(scores.others)
    groups, labels = problem.groups, problem.label_groups
    found = np.ones(labels.nnz)
    expected_counts(
        labels.indptr, labels.indices, groups.indptr, groups.indices, own.indptr, own.indices,
        own.data, others.indptr, others.data, np.linspace(np.log(_LEAST), 0, _N_LEVELS), _RIDGE,
        np.zeros(problem.X.shape[0], np.uint8), found,
    )  # fmt: skip
    by_group = csr_matrix((found, labels.indices, labels.indptr), shape=labels.shape).T.tocsr()
    by_group.sort_indices()
    sizes = np.repeat(problem.sizes(), np.diff(by_group.indptr))
    return np.clip(np.rint(by_group.data), 1, sizes).astype(np.float32)


def _by_label(pairs: csr_matrix) -> csr_matrix:
    """Levels of the logarithms of scores, label by label, `(n_labels, n)`."""
    heights = np.log(np.maximum(pairs.data, np.float32(_LEAST))) / np.log(_LEAST)
    levels = np.rint((_N_LEVELS - 1) * (1 - heights)).clip(0, _N_LEVELS - 1).astype(np.uint8)
    return csr_matrix(
        csr_matrix((levels, pairs.indices, pairs.indptr), shape=pairs.shape).T.tocsr()
    )
