"""Theorems 3 and 4: how near a label's embedding comes to the true one."""

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from papers.contents import Block, Cell, Section, Table, Value
from papers.eagle.theory import (
    FloatArray,
    overlap,
    separation,
    theorem3_bound,
    theorem4_limit,
    theorem4_limit_printed,
)

_ANGLES = np.linspace(0, 2 * np.pi, 720, endpoint=False)
_ROUND_OFF = 1e-9
_NOISES = (0.0, 0.02, 0.05, 0.1)


def sections(quick: bool) -> list[Section]:
    """Theorem 3 on made-up data, and Theorem 4's condition."""
    n_runs = 5 if quick else 100
    return [
        Section(
            "Theorem 3, the best embedding",
            "the embedding that Equation 2 asks for is near the true one: the nearer, the less "
            "noise there is and the fewer groups two labels share.",
            f"Synthetic, {n_runs} runs of 60 pairs of samples with 5 labels on a circle, where "
            "the best embedding can be found by trying all angles.",
            partial(_theorem3, n_runs),
        ),
        Section(
            "Theorem 4, one step",
            "a step brings the embedding nearer to the true one while their cosine is at most "
            "1 - 2 ((1 - f / 2) / alpha - 1)^2.",
            "Algebra, no data: the limit that the theorem's own bound gives, beside the printed "
            "one.",
            _theorem4,
        ),
    ]


def _theorem3(n_runs: int) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for noise in _NOISES:
        runs = [simulate(noise, np.random.default_rng(run)) for run in range(n_runs)]
        bounds, found = np.array(runs).T
        kept = int((found >= bounds - _ROUND_OFF).sum())
        rows.append(
            [f"{noise:g}", *(Value(float(v.min()), digits=4) for v in (bounds, found)),
             f"{kept} of {n_runs}"]
        )  # fmt: skip
    yield Table(
        "Least cosine with the true embedding over runs and labels",
        ["noise f, at most", "bound (6)", "measured", "runs that keep the bound"],
        rows,
    )


def simulate(
    noise: float, rng: np.random.Generator, n_labels: int = 5, n_groups: int = 60
) -> tuple[float, float]:
    """Theorem 3's bound and the least cosine of a best and a true embedding, in one run.

    Each group holds a sample of each of two random labels, turned from its label's embedding so
    that it is off by `noise` at most.
    """
    angles = 2 * np.pi * np.arange(n_labels) / n_labels
    embeddings = _on_circle(angles)
    pairs = rng.permuted(np.tile(np.arange(n_labels), (n_groups, 1)), axis=1)[:, :2]
    turns = 2 * np.arcsin(noise / 2) * rng.uniform(-1, 1, pairs.shape)
    X = _on_circle(angles[pairs] + turns)  # (groups, 2, 2 features)
    group_labels = np.zeros((n_groups, n_labels))
    np.put_along_axis(group_labels, pairs, 1, axis=1)
    f = float(np.linalg.norm(X - embeddings[pairs], axis=2).max())
    bound = theorem3_bound(f, separation(embeddings), overlap(group_labels))
    cosines = [
        best_embedding(X[group_labels[:, label] > 0]) @ embeddings[label]
        for label in range(n_labels)
    ]
    return bound, float(min(cosines))


def best_embedding(groups: FloatArray) -> FloatArray:
    """Equation 2 for samples of two features, `(groups, samples, 2)`, by trying all angles.

    Of the samples nearest to the best angle, the mean direction is better still.
    """
    similar = groups @ _on_circle(_ANGLES).T  # (groups, samples, angles)
    best = similar.max(axis=1).sum(axis=0).argmax()
    nearest = similar[:, :, best].argmax(axis=1)
    total: FloatArray = groups[np.arange(len(groups)), nearest].sum(axis=0)
    return total / np.linalg.norm(total)


def _theorem4() -> Iterator[Block]:
    yield Table(
        "Cosine below which a step is sure to help, by the share of groups that choose rightly "
        "(alpha) and the noise (f)",
        ["alpha", "f", "by the bound"],
        [
            [f"{alpha:g}", f"{f:g}", Value(theorem4_limit(alpha, f),
                                           paper=theorem4_limit_printed(alpha, f))]
            for alpha, f in product((1.0, 0.95, 0.9, 0.8), (0.0, 0.05, 0.2))
        ],
    )  # fmt: skip
    yield (
        "The printed condition does not follow from the bound: where some groups choose wrongly, "
        "it gets easier with more noise. "
        "The bound gives alpha u^2 - sqrt(2) (1 - alpha) u - f > 0 for u = sqrt(1 - cosine). It is "
        "about a step to the mean of the chosen samples, while Algorithm 1 takes a small one."
    )


def _on_circle(angles: FloatArray) -> FloatArray:
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)
