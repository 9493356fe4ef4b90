"""Precision and propensity-scored precision at 1, 3 and 5, in percent."""

import numpy as np
from scipy.sparse import csr_matrix

DEPTHS = (1, 3, 5)


def accuracy(labels: np.ndarray, Y_test: csr_matrix, Y_train: csr_matrix) -> dict[str, float]:
    """`labels` are the answers (samples, 5), best first, -1 where there is none."""
    weight = _inverse_propensity(Y_train)
    hits = _hits(labels, Y_test)
    gains = hits * np.where(labels >= 0, weight[labels], 0)
    best = _best_gains(Y_test, weight, max(DEPTHS))
    result = {f"P@{k}": 100 * hits[:, :k].sum(axis=1).mean() / k for k in DEPTHS}
    scored = {f"PSP@{k}": 100 * gains[:, :k].sum() / best[:, :k].sum() for k in DEPTHS}
    return {name: float(value) for name, value in (result | scored).items()}


def _inverse_propensity(Y_train: csr_matrix, a: float = 0.55, b: float = 1.5) -> np.ndarray:
    n_samples, n_labels = Y_train.shape
    counts = np.bincount(Y_train.indices, minlength=n_labels)
    return 1 + (np.log(n_samples) - 1) * (b + 1) ** a * (counts + b) ** -a


def _hits(labels: np.ndarray, Y: csr_matrix) -> np.ndarray:
    rows = np.repeat(np.arange(len(labels)), labels.shape[1])
    found = np.asarray(Y[rows, np.maximum(labels, 0).ravel()]).reshape(labels.shape)
    return (found > 0) & (labels >= 0)


def _best_gains(Y: csr_matrix, weight: np.ndarray, k: int) -> np.ndarray:
    best = np.zeros((Y.shape[0], k))
    for row in range(Y.shape[0]):
        top = np.sort(weight[Y.indices[Y.indptr[row] : Y.indptr[row + 1]]])[::-1][:k]
        best[row, : len(top)] = top
    return best
