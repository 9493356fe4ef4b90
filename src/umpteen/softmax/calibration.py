"""Probabilities that are as often right as they say, fitted on the validation split."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.softmax.prediction import Answers
from umpteen.validation import Features

_MOST_SCORES, _LEAST_ROWS = 2**23, 200  # of the samples that it is fitted to
_MAX_ROUNDS = 12
_SHARPNESS = 0.02, 50.0  # the least and the most
_TRUST = 1.0  # in sharpness 1 and prior 0, as that of a sample

Doubles = npt.NDArray[np.float64]


class Calibration(NamedTuple):
    """p(y|x) is proportional to exp(sharpness * score + prior * log(count of y))."""

    sharpness: float = 1.0  # one over the temperature
    prior: float = 0.0


def calibrate(answers: Answers, X: Features, Y: csr_matrix) -> Calibration:
    """Return the calibration of largest likelihood; a sample's labels count as one together.

    The likelihood is concave in both numbers: Newton's method, with steps that are halved until
    they are better. A pass over the scores of all classes for each of some ten rounds; with very
    many classes some of the samples have to do.
    """
    n_rows = max(_LEAST_ROWS, _MOST_SCORES // len(answers.counts))
    X, Y = X[:n_rows], Y[:n_rows]
    now: Doubles = np.array([1.0, 0.0])
    best, (slope, curvature) = _likelihood(answers, X, Y, now)
    for _ in range(_MAX_ROUNDS):
        step: Any = np.linalg.solve(curvature, slope)
        while np.abs(step).max() > 1e-3:
            moved = now + step
            moved[0] = np.clip(moved[0], *_SHARPNESS)
            value, derivatives = _likelihood(answers, X, Y, moved)
            if value > best:
                now, best, (slope, curvature) = moved, value, derivatives
                break
            step = step / 2
        else:
            break
    return Calibration(float(now[0]), float(now[1]))


def _likelihood(
    answers: Answers, X: Features, Y: csr_matrix, at: Doubles
) -> tuple[float, tuple[Doubles, Doubles]]:
    """The log-likelihood, its slope, and minus its second derivative."""
    away = at - [1.0, 0.0]
    value = -0.5 * _TRUST * float(away @ away)
    slope, curvature = -_TRUST * away, _TRUST * np.eye(2)
    for evidence, own in _blocks(answers, X, Y):
        scores = at[0] * evidence[0] + at[1] * evidence[1]
        scores -= scores.max(axis=1, keepdims=True)
        p = np.exp(scores)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        value += float((own.multiply(scores)).sum() - np.log(total).sum())
        means = np.stack([np.einsum("ij,ij->i", p, each) for each in evidence])  # (2, rows)
        found = np.array([own.multiply(each).sum() for each in evidence])
        slope = slope + found - means.sum(axis=1)
        for i, j in ((0, 0), (0, 1), (1, 1)):
            product = np.einsum("ij,ij,ij->i", p, evidence[i], evidence[j])
            curvature[i, j] += float((product - means[i] * means[j]).sum())
        curvature[1, 0] = curvature[0, 1]
    return value, (slope, curvature)


def _blocks(
    answers: Answers, X: Features, Y: csr_matrix
) -> Iterator[tuple[tuple[Doubles, Doubles], csr_matrix]]:
    """Yield scores and log-counts of all classes seen, and the share of each in its sample."""
    seen = answers.counts > 0
    shares = csr_matrix(Y[:, seen], dtype=np.float64)
    shares.data[:] = np.repeat(1 / np.maximum(np.diff(shares.indptr), 1), np.diff(shares.indptr))
    log_counts = answers.log_counts[seen].astype(np.float64)
    for first in range(0, X.shape[0], answers.block):
        rows = slice(first, first + answers.block)
        table = answers.table(X[rows])[:, seen].astype(np.float64)
        yield (table, np.broadcast_to(log_counts, table.shape)), shares[rows]
