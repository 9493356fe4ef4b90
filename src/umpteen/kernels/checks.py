"""Looks at arrays before anything else does."""

from typing import Any

import numpy as np

from umpteen.kernels.compiling import kernel


@kernel
def is_clean(indptr: Any, indices: Any, data: Any, n_columns: int) -> bool:
    """Return whether a CSR matrix is whole, sorted, free of duplicates, in range and finite."""
    if len(indptr) == 0 or indptr[0] != 0 or len(indices) != len(data):
        return False
    if indptr[-1] != len(indices):
        return False
    for row in range(len(indptr) - 1):
        start, end = indptr[row], indptr[row + 1]
        if start > end or end > len(indices):
            return False
        before = -1
        for entry in range(start, end):
            if indices[entry] <= before or not np.isfinite(data[entry]):
                return False
            before = indices[entry]
        if before >= n_columns:
            return False
    return True
