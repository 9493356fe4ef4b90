"""Initial weights: each class starts at its centroid, which saves some epochs."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse
from scipy.special import logsumexp

from umpteen.softmax.split import Samples
from umpteen.softmax.weights import DenseScores, SparseScores, new_scores
from umpteen.validation import Features

_BLOCK_CLASSES = 4_096
_BLOCK_SCORES = 2**21
_FIRST_SQUARE = 0.01  # of samples of unit length
_USUAL_SCALE = 10.0
SCALES = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)


def centroid_scores(X: Features, Y: csr_matrix, scale: float) -> DenseScores | SparseScores:
    """Return scores of about `scale` times the cosine of a sample and its class's centroid.

    About, since a sample counts as being as long as samples are in the root mean square. Dense
    samples are taken relative to their mean; of sparse ones that would leave nothing sparse.

    Adagrad's sums of squares do not start near zero here: its first steps would all be as long
    as the learning rate, however small the gradient is, and leave nothing of the start.
    """
    scores = new_scores(X, Y)
    if scale == 0:
        return scores
    given = csr_matrix((np.ones(Y.nnz, np.float32), Y.indices, Y.indptr), shape=Y.shape)
    if isinstance(scores, SparseScores):
        scores.set_weights(
            _with_length(csr_matrix(given.T @ X), scale / root_mean_square_length(X))
        )
    else:
        _fill(scores, np.asarray(X), csr_matrix(given.T), scale)
    scores.weight_squares[:] = _FIRST_SQUARE * root_mean_square_length(X) ** 2
    scores.bias_squares[:] = _FIRST_SQUARE
    return scores


def initial_scale(
    given: float | str, training: Samples, validation: Samples | None
) -> tuple[float, float]:
    """Return the scale of initial scores, and the factor of the regulariser that suits it.

    "auto" is the likeliest scale for dense rows, if there are validation samples.
    """
    if not isinstance(given, str):
        return float(given), 1.0
    if validation is None or issparse(training.X):
        return _USUAL_SCALE, 1.0
    found = likeliest_scale(training, validation)
    return found, (_USUAL_SCALE / found) ** 2


def likeliest_scale(training: Samples, validation: Samples) -> float:
    """Return the scale of the centroids' scores under which the validation split is likeliest."""
    start = centroid_scores(training.X, training.Y, 1.0)
    seen = training.counts > 0
    size = max(1, _BLOCK_SCORES // len(seen))
    totals = np.zeros(len(SCALES))
    for first in range(0, len(validation), size):
        rows = slice(first, first + size)
        scores = start.table(validation.X[rows])[:, seen]
        own: Any = validation.Y[rows][:, seen]
        own.data = np.ones(own.nnz, np.float32)
        mean = np.asarray(own.multiply(scores).sum(axis=1)).ravel() / own.getnnz(axis=1)
        for i, scale in enumerate(SCALES):
            totals[i] += (scale * mean - logsumexp(scale * scores, axis=1)).sum()
    return SCALES[int(np.argmax(totals))]


def _fill(
    scores: DenseScores, X: npt.NDArray[np.float32], by_class: csr_matrix, scale: float
) -> None:
    mean = X.mean(axis=0)
    scale /= float(np.sqrt(X.var(axis=0, dtype=np.float64).sum())) or 1.0
    for first in range(0, len(scores.biases), _BLOCK_CLASSES):
        block = slice(first, first + _BLOCK_CLASSES)
        sums = by_class[block] @ X - np.diff(by_class[block].indptr)[:, None] * mean
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        scores.weights[block] = sums * (scale / np.maximum(lengths, 1e-12))
    scores.biases[:] = -scores.weights @ mean


def _with_length(rows: csr_matrix, length: float) -> csr_matrix:
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    factors = length / np.maximum(lengths, 1e-12)
    rows.data *= np.repeat(factors, np.diff(rows.indptr)).astype(rows.dtype)
    rows.sort_indices()
    return rows


def root_mean_square_length(X: Features) -> float:
    """Return the root mean square of the samples' lengths; 1 if all of them are zero.

    >>> root_mean_square_length(np.array([[3.0, 4.0], [0.0, 5.0]]))
    5.0
    """
    values = X if isinstance(X, np.ndarray) else X.data
    total = float(np.square(values, dtype=np.float64).sum())
    return float(np.sqrt(total / X.shape[0])) or 1.0
