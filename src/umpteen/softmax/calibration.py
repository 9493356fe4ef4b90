"""Probabilities that are as often right as they say, fitted on the validation split."""

from collections.abc import Iterator
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from umpteen.softmax.prediction import NOT_CALIBRATED, Answers, Calibration, bent
from umpteen.validation import Features

_MOST_SCORES, _LEAST_ROWS = 2**23, 200  # of the samples that it is fitted to
_MAX_ROUNDS = 12
_SLOPE = 0.02, 50.0  # the least and the most, of scores that are large and of those that are 0
_TRUST = 1.0  # in no calibration, as that of a sample

Doubles = npt.NDArray[np.float64]


def calibrate(answers: Answers, X: Features, Y: csr_matrix) -> Calibration:
    """Return the calibration of largest likelihood; a sample's labels count as one together.

    The likelihood is concave in all numbers, so this is Newton's method, with steps that are halved
    until they are better. A higher score never gets a lower probability. Each of about ten rounds
    is a pass over the scores of all classes. With very many classes, only some of the samples are
    used, from all over the split, because its order may mean something.
    """
    n_rows = min(X.shape[0], max(_LEAST_ROWS, _MOST_SCORES // len(answers.counts)))
    rows = np.arange(n_rows) * X.shape[0] // max(n_rows, 1)
    X, Y = X[rows], Y[rows]
    now: Doubles = np.array(NOT_CALIBRATED)
    best, (slope, curvature) = _likelihood(answers, X, Y, now)
    for _ in range(_MAX_ROUNDS):
        step: Any = np.linalg.solve(curvature, slope)
        while np.abs(step).max() > 1e-3:
            moved = _rising(now + step)
            value, derivatives = _likelihood(answers, X, Y, moved)
            if value > best:
                now, best, (slope, curvature) = moved, value, derivatives
                break
            step = step / 2
        else:
            break
    return Calibration(*map(float, now))


def _rising(at: Doubles) -> Doubles:
    """The same, or the nearest with which probabilities rise with scores, but not too steeply.

    The slope is `sharpness` where scores are large, and `sharpness + bend` where they are 0.
    """
    sharpness = float(np.clip(at[0], *_SLOPE))
    bend = float(np.clip(at[2], _SLOPE[0] - sharpness, _SLOPE[1]))
    return np.array([sharpness, at[1], bend])


def _likelihood(
    answers: Answers, X: Features, Y: csr_matrix, at: Doubles
) -> tuple[float, tuple[Doubles, Doubles]]:
    """The log-likelihood, its slope, and minus its second derivative."""
    away = at - np.array(NOT_CALIBRATED)
    value = -0.5 * _TRUST * float(away @ away)
    slope, curvature = -_TRUST * away, _TRUST * np.eye(len(at))
    for evidence, own in _blocks(answers, X, Y):
        scores = sum(weight * each for weight, each in zip(at, evidence, strict=True))
        scores -= scores.max(axis=1, keepdims=True)
        p = np.exp(scores)
        total = p.sum(axis=1, keepdims=True)
        p /= total
        value += float((own.multiply(scores)).sum() - np.log(total).sum())
        means = np.stack([np.einsum("ij,ij->i", p, each) for each in evidence])  # (3, rows)
        found = np.array([own.multiply(each).sum() for each in evidence])
        slope = slope + found - means.sum(axis=1)
        for i, j in combinations_with_replacement(range(len(at)), 2):
            product = np.einsum("ij,ij,ij->i", p, evidence[i], evidence[j])
            curvature[i, j] += float((product - means[i] * means[j]).sum())
            curvature[j, i] = curvature[i, j]
    return value, (slope, curvature)


def _blocks(
    answers: Answers, X: Features, Y: csr_matrix
) -> Iterator[tuple[tuple[Doubles, ...], csr_matrix]]:
    """Yield scores, log-counts and bent scores of all classes seen, and each one's share."""
    seen = answers.counts > 0
    shares = csr_matrix(Y[:, seen], dtype=np.float64)
    shares.data[:] = np.repeat(1 / np.maximum(np.diff(shares.indptr), 1), np.diff(shares.indptr))
    log_counts = answers.log_counts[seen].astype(np.float64)
    for first in range(0, X.shape[0], answers.block):
        rows = slice(first, first + answers.block)
        scores = answers.scores(X[rows])[:, seen].astype(np.float64)
        yield (scores, np.broadcast_to(log_counts, scores.shape), bent(scores)), shares[rows]
