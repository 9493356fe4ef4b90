"""Grow the noise tree again, on what the classifier has learned to look at."""

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.extmath import randomized_svd

from umpteen.softmax.noise import Noise
from umpteen.softmax.weights import DenseScores, SparseScores
from umpteen.validation import Features


def refreshed(noise: Noise, model: DenseScores | SparseScores, X: Features, Y: csr_matrix) -> Noise:
    """Noise of a tree along the directions in which the learned weights differ most.

    The scores were learned against the old noise, and have to learn the difference.
    """
    if noise.tree is None:
        return noise
    tree, weights = noise.tree, model.weights
    dim = min(int(tree.dim), *weights.shape)
    _, values, directions = randomized_svd(weights, dim, random_state=0)
    along = np.ascontiguousarray((directions * values[:, None]).T, np.float32)
    return Noise.of_tree(tree, X, Y, noise.share, along)
