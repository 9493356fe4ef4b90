"""All vectors are compared, none is overlooked: a blocked matrix product on all cores."""

from itertools import pairwise

import numpy as np

from umpteen import parallel
from umpteen.base import TopK
from umpteen.kernels.compiling import frozen
from umpteen.kernels.nearest import keep_nearest, merge_nearest, order_nearest, scan_nearest
from umpteen.parallel import one_thread_each
from umpteen.search.vectors import BoolArray, FloatArray

_FEW = 4  # queries; a matrix product pays from there on
_SCAN_NUMBERS = 500_000  # less is done sooner than a thread is started
_BLOCK_QUERIES = 256
_BLOCK_VECTORS = 8192  # 8 MB of rough scores per thread


def exact_topk(
    vectors: FloatArray, present: BoolArray, queries: FloatArray, k: int, *, n_jobs: int | None = -1
) -> TopK:
    """Return the k vectors with the largest inner product, of those that are `present`.

    Rows have length 1. The same bits for any number of threads, block sizes and BLAS.

    >>> exact_topk(np.eye(3, dtype=np.float32), np.ones(3, bool), np.eye(3, dtype=np.float32), 1)
    TopK(labels=array([[0],
           [1],
           [2]], dtype=int32), scores=array([[1.],
           [1.],
           [1.]], dtype=float32))
    """
    vectors, present, queries = frozen((vectors, present, queries))
    if len(queries) < _FEW:
        return _scan(vectors, present, queries, k, n_jobs)
    starts = range(0, len(queries), _BLOCK_QUERIES)
    blocks = [queries[start : start + _BLOCK_QUERIES] for start in starts]
    with one_thread_each:
        answers = parallel.run(
            lambda block: _block_topk(vectors, present, block, k), blocks, n_jobs=n_jobs
        )
    return TopK.concatenate(answers)


def _scan(
    vectors: FloatArray, present: BoolArray, queries: FloatArray, k: int, n_jobs: int | None
) -> TopK:
    """Few queries: the cores share the vectors, not the queries."""
    n_blocks = min(parallel.n_threads(n_jobs), 1 + vectors.size // _SCAN_NUMBERS)
    bounds = np.arange(n_blocks + 1) * len(vectors) // n_blocks
    blocks = parallel.run(
        lambda ends: scan_nearest(
            queries, vectors[slice(*ends)], present[slice(*ends)], ends[0], k
        ),
        list(pairwise(bounds.tolist())),
        n_jobs=n_jobs,
    )
    labels, scores = (np.concatenate(tables, axis=1) for tables in zip(*blocks, strict=True))
    return TopK(*merge_nearest(labels, scores, k))


def _block_topk(vectors: FloatArray, present: BoolArray, queries: FloatArray, k: int) -> TopK:
    labels = np.empty((len(queries), k), np.int32)
    scores = np.empty((len(queries), k), np.float32)
    kept = np.zeros(len(queries), np.int64)
    margin = rounding(vectors.shape[1])
    for first in range(0, len(vectors), _BLOCK_VECTORS):
        part = slice(first, first + _BLOCK_VECTORS)
        rough = queries @ vectors[part].T  # (queries, part)
        keep_nearest(
            rough, queries, vectors[part], present[part], first, margin, labels, scores, kept
        )
    order_nearest(labels, scores, kept)
    return TopK(labels, scores)


def rounding(dim: int) -> float:
    """Return how far a float32 product of unit vectors may be off, whatever its order of sums.

    Twice the usual bound of dim / 2^24 for lengths and products that are rounded themselves.

    >>> round(rounding(300), 6)
    3.6e-05
    """
    return 2.0 * (dim + 2) / 2**24
