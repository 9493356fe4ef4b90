"""Which samples of a group its labels belong to (Algorithm 2 of EAGLE)."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.aggregated.embeddings import Search, label_views, stacked
from umpteen.aggregated.presence import check_share, understood
from umpteen.aggregated.problem import Problem
from umpteen.kernels.grouped import assign, largest
from umpteen.validation import check_seed


def assign_labels(
    X: Any,
    groups: Any,
    group_labels: Any,
    *,
    iterations: int = 20,
    step: float = 0.1,
    center: bool = False,
    samples_per_label: str = "one",
    random_state: Any = 0,
    n_jobs: int | None = -1,
) -> csr_matrix:
    """Return the labels of each sample, `(n, n_labels)`, from those of its groups.

    This is Algorithm 2 of EAGLE (Shen et al. 2020). Each label of a group is assigned to the sample
    that is closest to the label's embedding (`group_label_embeddings`, which takes the same
    arguments); ties go to the first sample. With `samples_per_label="count"`, it is assigned to as
    many samples as its count in the group; "estimate" and "auto" are as in `Eagle`. A sample may
    get several labels, or none. If groups overlap, a sample has the labels that any of its groups
    assigns to it.

    >>> X = [[1, 0], [0, 1], [1, 0], [0, 1], [1, 0], [0.6, 0.8]]
    >>> groups = [[0, 1], [2, 3], [4, 5]]
    >>> assign_labels(X, groups, [[0, 1], [1], [0]], center=True, iterations=0).toarray()
    array([[1., 0.],
           [0., 1.],
           [0., 0.],
           [0., 1.],
           [1., 0.],
           [0., 0.]], dtype=float32)
    """
    problem = Problem.of(X, groups, group_labels)
    check_share(samples_per_label)
    search = Search.of(problem, iterations, step, center)
    share = understood(problem, samples_per_label)
    scores, _ = similarities(problem, search, check_seed(random_state), n_jobs)
    return handed_out(problem, scores, share)


def similarities(
    problem: Problem, search: Search, seed: int, n_jobs: int | None, keep: int = 0
) -> tuple[csr_matrix, csr_matrix]:
    """Return samples' similarities to labels of their groups, `(n, n_labels)`, and embeddings.

    Of each embedding the `keep` largest values are kept.
    """
    views, embeddings, scores = [], [], []
    for view in label_views(problem, search, seed, n_jobs):
        views.append(view.labels)
        scores.append(view.scores)
        embeddings.append(_largest(view.embeddings, keep))
    pairs = stacked(scores, views, problem.n_labels)
    return csr_matrix(pairs.T.tocsr()), stacked(embeddings, views, problem.n_labels)


def handed_out(
    problem: Problem,
    scores: csr_matrix,
    samples_per_label: str,
    numbers: npt.NDArray[np.float32] | None = None,
) -> csr_matrix:
    """Return labels given to the best-scored samples of their groups, `(n, n_labels)`.

    Each goes to as many samples of its group as `numbers` says, in the order of
    `problem.group_labels`. Without these it goes to "one", to as many as its "count", or, where
    counts are not known, to as many as can be expected: the best of each group, and as many more,
    by their scores, as `Problem.probabilities` says ("estimate").
    """
    labels = problem.group_labels
    is_known = numbers is not None
    if numbers is None:
        numbers = labels.data if samples_per_label == "count" else np.ones_like(labels.data)
    chosen = np.zeros(scores.nnz, np.bool_)
    assign(
        problem.groups.indptr, problem.groups.indices, labels.indptr, labels.indices, numbers,
        scores.indptr, scores.indices, scores.data, chosen,
    )  # fmt: skip
    if samples_per_label == "estimate" and not is_known:
        chosen |= _expected_beyond_one(problem, scores, chosen)
    return _given(scores, chosen)


def _expected_beyond_one(
    problem: Problem, scores: csr_matrix, chosen: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """More pairs of samples and labels, the best first, as many as are likely to be missing."""
    total = problem.probabilities * problem.groups.nnz
    missing = np.rint(total - np.bincount(scores.indices[chosen], minlength=problem.n_labels))
    rest = np.flatnonzero(~chosen)
    rest = rest[np.lexsort((-scores.data[rest], scores.indices[rest]))]
    label = scores.indices[rest]
    first = np.searchsorted(label, label)  # where the label's pairs begin
    more = np.zeros_like(chosen)
    more[rest[np.arange(len(rest)) - first < missing[label]]] = True
    return more


def _given(scores: csr_matrix, chosen: npt.NDArray[np.bool_]) -> csr_matrix:
    counts = np.concatenate([[0], np.cumsum(chosen)])[scores.indptr]
    ones = np.ones(int(chosen.sum()), np.float32)
    return csr_matrix((ones, scores.indices[chosen], counts.astype(np.int32)), shape=scores.shape)


def _largest(rows: csr_matrix, keep: int) -> csr_matrix:
    """Each row's `keep` values of largest size."""
    indptr, indices, data = largest(rows.indptr, rows.indices, rows.data, keep)
    return csr_matrix((data, indices, indptr), shape=rows.shape)
