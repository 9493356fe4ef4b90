"""Theorem 2, measured, and Theorem 4, put right."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from papers.contents import Block, Cell, Section, Table, Value

Floats = npt.NDArray[np.float64]

_START, _NEARBY = 0.2, 0.01  # size of weights; from large ones, L-BFGS leaves for infinity
_CASES = ((12, 8, 30), (8, 12, 40))  # features, classes, samples


def sections(quick: bool) -> list[Section]:
    """Both theorems."""
    n_starts = 3 if quick else 10
    return [
        Section(
            "Theorem 2: no spurious minima of a linear bottleneck",
            "two linear layers that are trained with the Frobenius loss have no local minimum that "
            "is not global, if the features are of full row rank.",
            "Gaussian features and random classes; L-BFGS from random starts, and again from "
            f"points near its ends ({_NEARBY:g} away in each weight) until these are no better, "
            "against the best matrix of that rank in closed form (a truncated singular value "
            "decomposition).",
            partial(_bottlenecks, n_starts),
        ),
        Section(
            "Theorem 4: how far a softmax is off",
            "if logits are off by D, the softmax is off by E <= sum |exp(D_j) - 1|.",
            "Random softmaxes and errors of logits; E is the sum of absolute differences.",
            partial(_softmax_errors, 2_000 if quick else 200_000),
        ),
    ]


def best_of_rank(features: Floats, targets: Floats, rank: int) -> float:
    """The least of |W features - targets|^2 / 2 over matrices W of this rank (Eq. 28)."""
    _, sizes, basis = np.linalg.svd(features, full_matrices=False)
    inside = targets @ basis[sizes > 1e-10].T  # what the features can reach
    outside = (targets**2).sum() - (inside**2).sum()
    left = np.linalg.svd(inside, compute_uv=False)[rank:]
    return float(0.5 * (outside + (left**2).sum()))


def trained(features: Floats, targets: Floats, rank: int, seed: int) -> float:
    """Where descent over both layers ends, from a random start.

    Descent is slow near a saddle, and may stop there. So it goes on from a point nearby until that
    is no better: from a minimum, it would come back.
    """
    sizes = (len(targets), rank), (rank, len(features))
    cut = sizes[0][0] * rank

    def objective(values: Floats) -> tuple[float, Floats]:
        second, first = values[:cut].reshape(sizes[0]), values[cut:].reshape(sizes[1])
        off = second @ first @ features - targets
        slopes = off @ (first @ features).T, second.T @ off @ features.T
        return 0.5 * float((off**2).sum()), np.concatenate([each.ravel() for each in slopes])

    random = np.random.default_rng(seed)
    at = _START * random.standard_normal(cut + sizes[1][0] * sizes[1][1])
    value = np.inf
    options: Any = {"maxiter": 20_000, "maxfun": 50_000, "gtol": 1e-10, "ftol": 1e-15}
    while True:
        end = minimize(objective, at, jac=True, method="L-BFGS-B", options=options)
        if end.fun > value - 1e-9:
            return min(value, float(end.fun))
        value = float(end.fun)
        at = end.x + _NEARBY * random.standard_normal(len(at))


def _bottlenecks(n_starts: int) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for n_features, n_classes, n_samples in _CASES:
        random = np.random.default_rng(0)
        features = random.standard_normal((n_features, n_samples))
        targets = np.eye(n_classes)[random.integers(n_classes, size=n_samples)].T
        for rank in (1, 2, 4):
            best = best_of_rank(features, targets, rank)
            ends = [trained(features, targets, rank, seed) for seed in range(n_starts)]
            rows.append([
                f"{n_features} features, {n_classes} classes, rank {rank}", Value(best, digits=5),
                f"{max(ends) - best:.1e}", f"{best - min(ends):.1e}",
            ])  # fmt: skip
    columns = ["network", "global minimum", "worst end, above it", "best end, below it"]
    yield Table(f"{n_starts} starts each", columns, rows)


def error(p: Floats, D: Floats) -> Floats:
    """E: how much the softmax with log-probabilities log p changes if D is added to logits."""
    other = p * np.exp(D - D.max(-1, keepdims=True))
    return np.asarray(np.abs(other / other.sum(-1, keepdims=True) - p).sum(-1))


def printed_bound(D: Floats) -> Floats:
    """Eq. 20."""
    return np.asarray(np.abs(np.expm1(D)).sum(-1))


def shifted_bound(D: Floats) -> Floats:
    """Half of Eq. 20, of D minus its least: a softmax does not change if all logits move alike."""
    return np.asarray(np.expm1(D - D.min(-1, keepdims=True)).sum(-1) / 2)


def sharp_bound(D: Floats) -> Floats:
    """2 tanh((max D - min D) / 4), which some p reaches for every D."""
    return np.asarray(2 * np.tanh((D.max(-1) - D.min(-1)) / 4))


def drawn(n: int, n_classes: int, seed: int) -> tuple[Floats, Floats]:
    """Random softmaxes, flat to sharp, and errors of logits, small to large."""
    random = np.random.default_rng(seed)
    logits = random.standard_normal((n, n_classes)) * 10 ** random.uniform(-1, 1.2, (n, 1))
    p = np.exp(logits - logits.max(1, keepdims=True))
    errors = random.standard_normal((n, n_classes)) * 10 ** random.uniform(-2, 1, (n, 1))
    return p / p.sum(1, keepdims=True), errors


def _softmax_errors(n: int) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    bounds = {"as printed": printed_bound, "half, of D - min D": shifted_bound,
              "2 tanh((max D - min D) / 4)": sharp_bound}  # fmt: skip
    cases = {k: drawn(n, k, k) for k in (2, 3, 10)}
    for name, bound in bounds.items():
        row: list[Cell] = [name]
        for p, D in cases.values():
            row.append(Value(100 * float((error(p, D) > bound(D) + 1e-9).mean()), digits=2))
        rows.append(row)
    columns = ["bound", *(f"{k} classes: violated, %" for k in cases)]
    yield Table(f"{n:,} random cases each", columns, rows)
    yield (
        "As printed, the theorem is false: p = (1 - 0.0001, 0.0001) and D = (-20, 0) have E = 2.0 "
        "where the bound is 1.0. It holds, even with half of it, if no D_j is negative; as all D_j "
        "may be shifted alike, that gives the second bound. The third is the least possible that "
        "depends on the range of D only: the exponential tilt of a distribution by D."
    )
