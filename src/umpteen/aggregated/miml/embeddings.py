"""Label embeddings out of groups: Algorithm 1 of the paper, label by label."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix

from umpteen.aggregated.miml.mask import affinities, unit_rows
from umpteen.parallel import run
from umpteen.validation import Features

Floats = npt.NDArray[np.float32]


def label_embeddings(
    X: Features,
    groups: csr_matrix,
    group_labels: csr_matrix,
    *,
    iterations: int = 20,
    step: float = 0.1,
    center: bool = False,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Features:
    """One row of unit length per label, near the samples that its groups have in common.

    A label begins as the sum of all samples of its groups, counts as weights; then the sample
    nearest to it in each group pulls it by `step`, `iterations` times. A label whose sum is zero
    begins at the first sample of its first group; a label without groups is zero.
    """
    rows: Any = unit_rows(X)
    if center:
        rows = np.asarray(rows - rows.mean(axis=0), dtype=np.float32)
    first: Any = unit_rows(csr_matrix(group_labels.T) @ (groups @ rows))
    if iterations == 0 or groups.getnnz(axis=1).max(initial=0) <= 1:
        return first  # type: ignore[no-any-return]
    of_labels = csr_matrix(group_labels.T)

    def refine(label: int) -> Any:
        start, end = of_labels.indptr[label : label + 2]
        members = groups[of_labels.indices[start:end]]
        return _refined(rows, members, of_labels.data[start:end], first[label], iterations, step)

    found = run(refine, range(group_labels.shape[1]), n_jobs=n_jobs)
    return csr_matrix(sparse.vstack(found)) if sparse.issparse(first) else np.vstack(found)


def _refined(
    rows: Any, members: csr_matrix, counts: Floats, begin: Any, iterations: int, step: float
) -> Any:
    filled = np.diff(members.indptr) > 0
    sizes, counts = np.diff(members.indptr)[filled], counts[filled]
    embedding: Any = begin if sparse.issparse(begin) else begin[None, :]
    if not len(sizes):
        return embedding
    samples = rows[members.indices]
    if not abs(embedding).sum():
        embedding = unit_rows(samples[:1])
    starts = np.cumsum(sizes) - sizes
    for _ in range(iterations):
        scores = affinities(samples, embedding).ravel()
        best = np.repeat(np.maximum.reduceat(scores, starts), sizes)
        weights: Any = csr_matrix(np.where(scores == best, np.repeat(counts, sizes), 0)[None, :])
        pull: Any = unit_rows(weights @ samples)
        embedding = unit_rows(embedding + step * pull)
    return embedding
