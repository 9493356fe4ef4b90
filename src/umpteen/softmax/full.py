"""Softmax without negatives: every class in every step, O(n_classes * d) each."""

import numpy as np
import numpy.typing as npt

from umpteen.kernels.sampled_softmax import SAMPLED_SOFTMAX, Rules, step_all, step_biases
from umpteen.softmax.weights import DenseScores, SparseScores
from umpteen.validation import Features

IntArray = npt.NDArray[np.int32]


def train_on_all_classes(
    model: DenseScores | SparseScores, rules: Rules, X: Features, rows: IntArray, labels: IntArray
) -> None:
    """Train in one pass over visits of rows, each with its label."""
    for first in range(0, len(rows), rules.batch_size):
        batch = slice(first, first + rules.batch_size)
        if isinstance(model, DenseScores):
            _dense_step(model, rules, X, rows[batch], labels[batch])
        else:
            _sparse_step(model, rules, X, rows[batch], labels[batch])


def _dense_step(
    model: DenseScores, rules: Rules, X: Features, rows: IntArray, labels: IntArray
) -> None:
    """The gradient for all weights at once, by two matrix products."""
    batch = X[rows]
    scores = model.table(batch)
    slopes = np.exp(scores - scores.max(axis=1, keepdims=True))
    slopes /= slopes.sum(axis=1, keepdims=True)
    own = np.arange(len(rows)), labels
    slopes[own] -= 1
    penalty = np.float32(2 * rules.regularizer)
    slopes += penalty / np.float32(len(model.biases)) * scores
    slopes[own] += penalty * scores[own]
    weight_rate = rules.learning_rate / rules.feature_length
    step_all(model.weights, model.weight_squares, slopes.T @ batch, weight_rate)
    step_biases(model.biases, model.bias_squares, slopes.sum(axis=0), rules.learning_rate)


def _sparse_step(
    model: SparseScores, rules: Rules, X: Features, rows: IntArray, labels: IntArray
) -> None:
    """Sampled softmax in which every class was drawn, and none needs a correction."""
    n_classes = len(model.biases)
    every = np.empty((len(rows), 1 + n_classes), np.int32)
    every[:, 0], every[:, 1:] = labels, np.arange(n_classes)
    logs = np.full(every.shape, -np.log(n_classes), np.float32)
    sampled = rules._replace(objective=SAMPLED_SOFTMAX)
    model.train(sampled, X, rows, every, logs, np.zeros(X.shape[0]), 0.0)
