"""The paper's Baseline: as if every sample had all labels of its groups."""

from typing import Any

from scipy.sparse import csr_matrix

from umpteen.aggregated.problem import Problem


def ignore_groups(X: Any, groups: Any, group_labels: Any) -> csr_matrix:
    """Return for each sample all labels of its groups, `(n, n_labels)`: the paper's Baseline.

    Any classifier can be trained on the result. `Eagle` should be better.

    >>> ignore_groups([[1], [2], [3]], [[0, 1], [2]], [[0, 2], [1]]).toarray()
    array([[1., 0., 1.],
           [1., 0., 1.],
           [0., 1., 0.]], dtype=float32)
    """
    return Problem.of(X, groups, group_labels).everything
