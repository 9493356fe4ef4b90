"""What each objective converges to, where the truth is known: a table of probabilities."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from papers.contents import Block, Cell, Section, Table, over_seeds
from umpteen.softmax import AdversarialSoftmax, NoiseTree, SoftmaxRecipe

_N_KINDS = 12
_PLAIN = SoftmaxRecipe(
    centroid_scale=0.0, regularizer=0.0, validation_fraction=0.0, frequency_share=0.0
)
_TREE = NoiseTree(regularizer=1e-3, n_jobs=1, verbose=False)
_SAMPLED: dict[str, Any] = {"objective": "sampled_softmax"}
_NEGATIVE: dict[str, Any] = {"objective": "negative_sampling"}
_CASES: dict[str, dict[str, Any]] = {
    "sampled softmax, 5 draws by frequency (default, sparse)": {**_SAMPLED, "n_negatives": 5},
    "sampled softmax, 20 draws by frequency": {**_SAMPLED, "n_negatives": 20},
    "sampled softmax, 100 draws by frequency": {**_SAMPLED, "n_negatives": 100},
    "sampled softmax, 5 draws from the tree": {**_SAMPLED, "n_negatives": 5, "noise": _TREE},
    "negative sampling, 1 draw by frequency, corrected": {**_NEGATIVE, "n_negatives": 1},
    "negative sampling, 1 draw from the tree, corrected": {
        **_NEGATIVE, "n_negatives": 1, "noise": _TREE,
    },
    "full softmax": {"objective": "softmax", "noise": "auto"},
}  # fmt: skip


def sections(quick: bool) -> list[Section]:
    """One section."""
    n_classes, n_samples, epochs, n_seeds = (20, 2_000, 2, 1) if quick else (200, 60_000, 40, 3)
    return [
        Section(
            "What the objectives converge to",
            "the bias of sampling is known exactly, and is taken out in prediction (Eq. 5).",
            f"{_N_KINDS} kinds of samples, {n_classes} classes, a score of its own for each pair, "
            f"{n_samples:,} samples, {epochs} epochs, learning rate 0.3, no penalty, no "
            f"calibration; seeds: {n_seeds}. The divergence (Kullback and Leibler) is that of the "
            "predicted probabilities from those of the data, mean over samples, in nats.",
            partial(_measure, n_classes, n_samples, epochs, n_seeds),
        )
    ]


def table(n_classes: int, n_samples: int, seed: int) -> tuple[Any, Any, Any]:
    """Return samples, which tell their kind only, their classes, and how often each pair occurs."""
    random = np.random.default_rng(seed)
    odds = random.dirichlet(np.full(n_classes, 0.1), _N_KINDS)
    kinds = np.arange(n_samples) % _N_KINDS
    y = (odds.cumsum(axis=1)[kinds] < random.random((n_samples, 1))).sum(axis=1)
    y = np.minimum(y, n_classes - 1)
    counts = np.zeros((_N_KINDS, n_classes))
    np.add.at(counts, (kinds, y), 1)
    return rows_of_kinds()[kinds], y, counts


def rows_of_kinds() -> npt.NDArray[np.float32]:
    """Return a vector for each kind; they are orthogonal, and dense so that weights are, too."""
    random = np.random.default_rng(0)
    turn: Any = np.linalg.qr(random.standard_normal((_N_KINDS, _N_KINDS)))[0]
    return np.ascontiguousarray(turn, np.float32)


def divergence(model: AdversarialSoftmax, counts: npt.NDArray[np.float64]) -> float:
    """Return how far the predictions are from the shares of the data, mean over samples."""
    n_classes = counts.shape[1]
    every = np.tile(np.arange(n_classes), (_N_KINDS, 1))
    logs = model.predict_log_proba(rows_of_kinds(), every).astype(np.float64)
    shares = counts / counts.sum(axis=1, keepdims=True)
    seen = shares > 0
    each = np.zeros_like(shares)
    each[seen] = shares[seen] * (np.log(shares[seen]) - logs[seen])
    return float(np.average(each.sum(axis=1), weights=counts.sum(axis=1)))


def _measure(n_classes: int, n_samples: int, epochs: int, n_seeds: int) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for name, setting in _CASES.items():
        runs = []
        for seed in range(n_seeds):
            X, y, counts = table(n_classes, n_samples, seed)
            model = AdversarialSoftmax(recipe=_PLAIN, epochs=epochs, random_state=seed, n_jobs=1)
            model.set_params(**{"noise": "frequency", "verbose": False, **setting})
            runs.append(divergence(model.fit(X, y), counts))
        rows.append([name, over_seeds(runs, digits=4)])
    yield Table("Divergence of the predictions from the data", ["objective", "nats"], rows)
