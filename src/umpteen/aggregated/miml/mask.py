"""Soft assignment of labels to the instances of a bag."""

import numpy as np
import numpy.typing as npt
from scipy import sparse

from umpteen.validation import Features

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


def assignment_mask(affinities: Floats, sizes: Integers, temperature: float) -> Floats:
    """Return how much of each label belongs to each instance of its bag, 1 on average (section 6).

    `affinities` are (instances, labels), those of the first bag first; `sizes` says how many
    instances each bag has, at least one. The mask is the bag's size times the softmax of
    `temperature * affinities` over its instances, each label by itself: never negative, and
    for each bag and label it sums to the bag's size.

    >>> assignment_mask(np.float32([[0.5], [0.5], [0.9]]), np.array([2, 1]), temperature=3.0)
    array([[1.],
           [1.],
           [1.]], dtype=float32)
    """
    starts = np.cumsum(sizes) - sizes
    scaled = temperature * affinities.astype(np.float64)
    scaled -= np.repeat(np.maximum.reduceat(scaled, starts, axis=0), sizes, axis=0)
    weights = np.exp(scaled)
    shares = sizes[:, None] / np.add.reduceat(weights, starts, axis=0)
    return (weights * np.repeat(shares, sizes, axis=0)).astype(np.float32)


def affinities(X: Features, embeddings: Features) -> Floats:
    """Return the inner products of instances and label embeddings, dense: (instances, labels)."""
    product = X @ embeddings.T
    dense = product.toarray() if sparse.issparse(product) else product
    return np.asarray(dense, dtype=np.float32)
