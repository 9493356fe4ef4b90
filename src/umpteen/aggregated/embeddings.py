"""Embeddings of labels that are known only per group (Algorithm 1 of EAGLE)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, vstack

from umpteen import parallel
from umpteen.aggregated.background import Background
from umpteen.aggregated.problem import Problem
from umpteen.errors import ParameterError
from umpteen.kernels.compiling import frozen
from umpteen.kernels.grouped import GroupArrays, Scratch, embed
from umpteen.validation import check_count, check_number, check_seed

_CHUNK_ENTRIES = 2_000_000  # features of candidate samples at a time: 16 MB of embeddings
_LONGEST_STEP = 1e6  # as good as infinity, and no square overflows
_NOTHING = 1e-6  # a sum this short, as a share of what was added up, is zero but for rounding


@dataclass(frozen=True, eq=False)
class LabelView:
    """Some labels, as seen after Algorithm 1: embeddings, and how similar samples are to them."""

    labels: npt.NDArray[np.int32]
    embeddings: csr_matrix  # (labels, d)
    scores: csr_matrix  # (labels, n), a value for each sample of the labels' groups


def group_label_embeddings(
    X: Any,
    groups: Any,
    group_labels: Any,
    *,
    iterations: int = 20,
    step: float = 0.1,
    center: bool = False,
    random_state: Any = 0,
    n_jobs: int | None = -1,
) -> csr_matrix:
    """Return an embedding of unit length for each label, close to one sample of each of its groups.

    This is Algorithm 1 of EAGLE (Shen et al. 2020), for all labels at once. An embedding starts at
    the sum of all samples of the label's groups. Then it moves `iterations` times by `step` towards
    the mean of the closest sample of each group (of all closest ones, if there are ties). `groups`
    `(n_groups, n)` and `group_labels` `(n_groups, n_labels)` are as in `Eagle.fit`; a label that
    occurs c times in a group counts c times. Rows of `X` are scaled to unit length.

    With `center`, the mean of the samples is subtracted first. Texts need this, because their rows
    have much in common. The result has values only at the features of the label's own samples;
    elsewhere the embedding is a multiple of the mean, which does not distinguish samples.

    The paper leaves two cases open. A label without groups has no embedding (an empty row). If the
    samples of a label's groups add up to zero, as in the paper's own example, the embedding starts
    at a random sample (`random_state`) that is far from the starts of other such labels of the
    same group.

    >>> X = [[1, 0], [0, 1], [1, 0], [0.6, 0.8]]
    >>> embeddings = group_label_embeddings(X, [[0, 1], [2, 3]], [[0, 1], [0, 1]])
    >>> embeddings.toarray().round(2)
    array([[0.88, 0.47],
           [0.88, 0.47]], dtype=float32)
    """
    problem = Problem.of(X, groups, group_labels)
    search = Search.of(problem, iterations, step, center)
    return embed_labels(problem, search, check_seed(random_state), n_jobs)


@dataclass(frozen=True, eq=False)
class Search:
    """How embeddings are found."""

    iterations: int
    step: float
    background: Background

    @classmethod
    def of(cls, problem: Problem, iterations: Any, step: Any, center: Any) -> "Search":
        """Return checked parameters of the public functions."""
        if not isinstance(center, bool | np.bool_):
            raise ParameterError(f"center={center!r} is not possible: expected True or False")
        plain = Background.none(problem.X.shape[1])
        background = Background.of_mean(problem.X) if center else plain
        if check_number(step, "step") > _LONGEST_STEP:
            raise ParameterError(f"step={step!r} is not possible: expected at most 1,000,000")
        return cls(check_count(iterations, "iterations"), float(step), background)


def embed_labels(problem: Problem, search: Search, seed: int, n_jobs: int | None) -> csr_matrix:
    """Return the embeddings of all labels, `(n_labels, d)`."""
    views = list(label_views(problem, search, seed, n_jobs))
    rows = stacked(
        [view.embeddings for view in views], [view.labels for view in views], problem.n_labels
    )
    rows.sort_indices()
    return rows


def label_views(
    problem: Problem, search: Search, seed: int, n_jobs: int | None
) -> Iterator[LabelView]:
    """Yield all labels in order, some at a time: that bounds memory.

    Labels whose samples add up to nothing have zeros there, and come again at the end.
    """
    problem = replace(problem, features=problem.X)  # one of both is enough to send
    arrays = _arrays(problem, search.background)
    n_samples, n_features = problem.X.shape
    scratch = parallel.PerThread(partial(_scratch, n_features, n_samples))
    shared = (problem, search, arrays, scratch)
    starts = np.full(problem.n_labels, -1, np.int64)
    tasks = [(labels, starts[labels]) for labels in _chunks(problem)]
    vague = []
    for found, unclear in parallel.stream(_view, tasks, shared, n_jobs=n_jobs):
        yield found
        vague.append(found.labels[unclear])
    again = _start_apart(problem, np.concatenate(vague), starts, seed)
    if len(again):
        yield _view((again, starts[again]), *shared)[0]


def _view(
    task: tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]], problem: Problem, search: Search,
    arrays: GroupArrays, scratch: parallel.PerThread[Scratch],
) -> tuple[LabelView, npt.NDArray[np.bool_]]:  # fmt: skip
    """Some labels and the samples that each starts from, and which of them add up to nothing."""
    labels, starts = task
    weights = csr_matrix(problem.label_groups[labels] @ problem.groups)
    weights.sort_indices()
    n_features = problem.X.shape[1]
    lengths_of = np.diff(problem.X.indptr)[weights.indices]
    ends = np.concatenate([[0], np.cumsum(lengths_of)])[weights.indptr]
    capacity = int(np.minimum(np.diff(ends), n_features).sum())
    room = np.empty(n_features, np.int32)
    indptr, indices, data, scores, vague = embed(
        *frozen((arrays, labels, weights.indptr, weights.indices, weights.data, starts)),
        search.iterations, search.step, _NOTHING, room, scratch.value, capacity,
    )  # fmt: skip
    found = LabelView(
        labels,
        csr_matrix((data, indices, indptr), shape=(len(labels), n_features)),
        csr_matrix((scores, weights.indices, weights.indptr), shape=weights.shape),
    )
    return found, vague


def stacked(
    blocks: list[csr_matrix], labels_of: list[npt.NDArray[np.int32]], n_labels: int
) -> csr_matrix:
    """Return the rows of all blocks in the order of labels."""
    rows = csr_matrix(vstack(blocks, format="csr"))
    labels = np.concatenate(labels_of)
    last = np.zeros(n_labels, np.int64)
    last[labels] = np.arange(len(labels))  # a label that came again counts as it came last
    return rows if len(labels) == n_labels else csr_matrix(rows[last])


def _start_apart(
    problem: Problem, vague: npt.NDArray[np.int32], starts: npt.NDArray[np.int64], seed: int
) -> npt.NDArray[np.int32]:
    """Gives labels whose samples add up to nothing a sample to start from; returns which.

    Labels of the same groups would all find the same embedding; so each starts from the
    sample of one of its groups that is least like the starts of such labels before it. A start is
    compared once with the samples of each of its groups.
    """
    begun: dict[int, list[int]] = {}  # starts of labels by group, not yet compared
    closest: dict[int, npt.NDArray[np.float32]] = {}  # similarity of members to those that were
    for label in vague.tolist():
        own = problem.label_groups.indices[
            problem.label_groups.indptr[label] : problem.label_groups.indptr[label + 1]
        ]
        if len(own) == 0:
            continue
        rng = np.random.default_rng((seed, label))
        group = int(rng.choice(own))
        bounds = problem.groups.indptr[group : group + 2]
        members = problem.groups.indices[bounds[0] : bounds[1]]
        if others := begun.pop(group, []):
            found = (problem.X[members] @ problem.X[others].T).max(axis=1).toarray().ravel()
            closest[group] = np.maximum(closest.get(group, found), found)
        order = rng.permutation(len(members))
        similarity = closest.get(group, np.zeros(len(members), np.float32))
        starts[label] = members[order[int(np.argmin(similarity[order]))]]
        for j in own.tolist():
            begun.setdefault(j, []).append(int(starts[label]))
    return vague[starts[vague] >= 0]


def _arrays(problem: Problem, background: Background) -> GroupArrays:
    X, groups, labels = problem.X, problem.groups, problem.label_groups
    return GroupArrays(
        X.indptr, X.indices, X.data, groups.indptr, groups.indices, labels.indptr, labels.indices,
        labels.data, background.mean, float(np.square(background.mean, dtype=np.float64).sum()),
        background.low(X), background.shrink,
    )  # fmt: skip


def _scratch(n_features: int, n_samples: int) -> Scratch:
    return Scratch(
        np.zeros(n_features), np.zeros(n_features), np.zeros(n_samples), np.zeros(n_samples)
    )


def _chunks(problem: Problem) -> list[npt.NDArray[np.int32]]:
    """Labels in order, cut where their candidate samples have enough features."""
    group_entries = problem.groups @ np.diff(problem.X.indptr).astype(np.float64)
    present = problem.label_groups.indices
    entries = np.add.reduceat(
        np.append(group_entries[present], 0), problem.label_groups.indptr[:-1]
    ) * (np.diff(problem.label_groups.indptr) > 0)
    chunk = (np.cumsum(entries) // _CHUNK_ENTRIES).astype(np.int64)
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(chunk)) + 1, [problem.n_labels]])
    return [np.arange(first, last, dtype=np.int32) for first, last in pairwise(bounds.tolist())]
