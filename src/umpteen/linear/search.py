"""Prediction: beam search in every tree, block of rows by block, and the trees' average."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen import parallel
from umpteen.kernels.beam import beam_search
from umpteen.kernels.topk import frozen_csr
from umpteen.linear.tree import Tree

_BLOCK_CELLS = 4_000_000  # candidates of one block: 16 MB, the cache of the upper layers' weights

Answer = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]


def search_trees(
    trees: Sequence[Tree], X: csr_matrix, k: int, beam_width: int, logistic: bool, n_jobs: int | None
) -> Answer:
    """Labels and log-scores, `(n, k)` each."""
    return search_tree(trees[0], X, k, beam_width, logistic, n_jobs)


def search_tree(
    tree: Tree, X: csr_matrix, k: int, beam_width: int, logistic: bool, n_jobs: int | None
) -> Answer:
    features, arrays, n = frozen_csr(X), tree.arrays, X.shape[0]
    if n == 1:
        return beam_search(*features, 0, 1, arrays, beam_width, k, logistic)
    size = max(1, min(_BLOCK_CELLS // (beam_width * tree.widest), -(-n // parallel.n_threads(n_jobs))))

    def search(first: int) -> Answer:
        return beam_search(
            *features, first, min(first + size, n), arrays, beam_width, k, logistic
        )

    parts = parallel.run(search, range(0, n, size), n_jobs=n_jobs)
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
