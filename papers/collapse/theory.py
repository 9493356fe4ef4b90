"""Theorem 1: what training would find if features could be anything."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from papers.collapse.unconstrained import UnconstrainedFeatures
from papers.contents import Block, Cell, Section, Table, Value

_CASES = [
    UnconstrainedFeatures(4, {1: 3, 2: 2}, 0.004, 0.004),
    UnconstrainedFeatures(5, {1: 2, 2: 1, 3: 1}, 0.004, 0.004),
    UnconstrainedFeatures(5, {1: 4, 2: 1, 3: 1}, 0.01, 0.002, normalize=True),
]


def sections(quick: bool) -> list[Section]:
    """The optimum, and where it becomes zero."""
    return [
        Section(
            "Theorem 1: the best features form a simplex and its sums",
            "every minimum of the pick-all-labels loss with penalties, over classifier, features "
            "and bias, has this form; all others are saddles.",
            "Descent (L-BFGS) from random starts, against the exact optimum, which convex "
            "optimisation of a few numbers gives.",
            partial(_against_descent, 1 if quick else 3),
        )
    ]


def _against_descent(n_starts: int) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for model in _CASES:
        theory = model.optimum()
        found = [model.descend(model.n_labels + 1, seed=seed) for seed in range(n_starts)]
        rows.append([
            _said(model),
            Value(theory.objective, digits=6),
            f"{max(abs(each.objective - theory.objective) for each in found):.1e}",
            f"{min(_cosine(model, each) for each in found):.6f}",
            ", ".join(f"C_{m} = {c:.3f}" for m, c in theory.coefficients.items()),
        ])  # fmt: skip
    columns = ["labels; samples", "optimum", "descent, off by", "least cosine", "coefficients"]
    yield Table(
        f"Over {n_starts} start(s); the cosine is that of a sample's feature and the sum of its "
        "labels' rows", columns, rows,
    )  # fmt: skip
    yield _threshold()


def _threshold() -> Table:
    """Around the product of penalties from which on zero is best."""
    model = _CASES[0]
    rows: list[list[Cell]] = []
    for factor in (0.9, 0.99, 1.01, 1.1):
        penalty = float(np.sqrt(factor * model.zero_from))
        near = UnconstrainedFeatures(model.n_labels, model.samples, penalty, penalty)
        found = near.descend(model.n_labels + 1)
        predicted = "zero" if near.optimum().is_zero else "not zero"
        rows.append([f"{factor:g}", predicted, f"{float((found.weight**2).sum()):.1e}"])
    columns = ["product of penalties over the threshold", "theory", "descent: |W|^2"]
    return Table(f"Where everything collapses to zero, {_said(model)}", columns, rows)


def _cosine(model: UnconstrainedFeatures, found: Any) -> float:
    sums = (model.targets > 0) @ found.weight
    lengths = np.linalg.norm(sums, axis=1) * np.linalg.norm(found.features, axis=1)
    return float(((sums * found.features).sum(axis=1) / lengths).min())


def _said(model: UnconstrainedFeatures) -> str:
    sizes = ", ".join(f"{count} x {m}" for m, count in model.samples.items())
    return f"K = {model.n_labels}; {sizes}" + ("; loss over m" if model.normalize else "")
