"""A tree that knows nothing of samples: it draws each class as often as it occurs."""

import numpy as np
import numpy.typing as npt

from umpteen.kernels.noise_tree import NoiseArrays
from umpteen.softmax.tree_fitting import depth_of, halved


def frequency_tree(frequencies: npt.NDArray[np.float64], dim: int) -> NoiseArrays:
    """Return a tree whose weights are 0 and whose biases are log-odds of the classes below.

    `frequencies` are positive. The tree's shape is that of `grow`, with classes in their order.

    >>> frequency_tree(np.array([0.2, 0.2, 0.6]), dim=1).biases.round(3)
    array([0.   , 1.386,   inf, 1.099], dtype=float32)
    """
    n_classes, depth = len(frequencies), depth_of(len(frequencies))
    biases = np.zeros(2**depth, np.float32)
    up_to = np.concatenate([[0.0], np.cumsum(frequencies)])
    bounds = np.array([0, n_classes])
    for level in range(depth):
        below = halved(bounds, np.diff(bounds) // 2)
        mass = np.diff(up_to[below])
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.log(mass[1::2]) - np.log(mass[::2])  # inf where no class is on the left
        biases[2**level : 2 ** (level + 1)] = np.nan_to_num(odds, nan=0.0, posinf=np.inf)
        bounds = below
    leaves = np.flatnonzero(np.diff(bounds)).astype(np.int32)
    label_of = np.full(2**depth, -1, np.int32)
    label_of[leaves] = np.arange(n_classes)
    return NoiseArrays(np.zeros((2**depth, dim), np.float32), biases, label_of, leaves)
