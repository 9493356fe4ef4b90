"""What makes a noise tree unusable: draws would end where no class is."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from umpteen.kernels.noise_tree import NoiseArrays

_LARGEST = 1e30  # with larger ones, log-probabilities would be infinite


def tree_faults(tree: NoiseArrays) -> Iterator[str]:
    """Yield what is wrong with a tree whose shapes and indices are right.

    >>> tree = NoiseArrays(np.zeros((2, 1)), np.array([0, 0.5]), np.array([-1, 0]), np.array([1]))
    >>> list(tree_faults(tree))
    ['has biases that lead to leaves without a class']
    """
    classes = np.arange(len(tree.leaf_of))
    n_used = np.count_nonzero(tree.label_of >= 0)
    if n_used != len(classes) or not np.array_equal(tree.label_of[tree.leaf_of], classes):
        yield "has leaves that are not one for each class"
    elif not (np.abs(tree.weights) <= _LARGEST).all():
        yield f"has weights that are not finite, or beyond {_LARGEST:g}"
    elif not _leads_to_classes(tree.label_of, tree.biases):
        yield "has biases that lead to leaves without a class"


def _leads_to_classes(label_of: npt.NDArray[np.int32], biases: npt.NDArray[np.float32]) -> bool:
    """Whether all goes to the other side wherever one side has no class."""
    has_class = label_of >= 0
    while len(has_class) > 1:
        left, right = has_class[::2], has_class[1::2]
        own = biases[len(left) : 2 * len(left)]
        is_safe = np.where(right, left | (own == np.inf), ~left | (own == -np.inf))
        if not is_safe.all() or np.isnan(own).any():
            return False
        has_class = left | right
    return True
