"""Grow the noise tree again, on what the classifier has learned to look at."""

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.extmath import randomized_svd

from umpteen.softmax.noise import Noise
from umpteen.softmax.training import State
from umpteen.validation import Features


def refreshed(state: State, X: Features, Y: csr_matrix) -> None:
    """A tree along the directions in which the learned weights differ most, in place.

    The scores are told from another noise from here on, and learn the difference.
    """
    if state.noise.tree is None:
        return
    tree, weights = state.noise.tree, state.model.weights
    dim = min(int(tree.dim), *weights.shape)
    _, values, directions = randomized_svd(weights, dim, random_state=0)
    along = np.ascontiguousarray((directions * values[:, None]).T, np.float32)
    state.noise = Noise.of_tree(tree, X, Y, state.noise.share, along)
