"""Theorem 1 where it holds exactly, and Equation 4: how much a drawn class teaches."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from scipy.special import expit, log_softmax

from papers.adversarial.methods import METHODS, train, warm_up
from papers.adversarial.tasks import MADE_UP, Task, available, task
from papers.contents import Block, Cell, Section, Table, Value
from umpteen.softmax import AdversarialSoftmax, NoiseTree

_N_KINDS, _N_CLASSES = 6, 8
_NEWTON_STEPS = 100
_EVERY = np.tile(np.arange(_N_CLASSES), (_N_KINDS, 1))
NOISES = ("tree", "frequency", "uniform")

FloatArray = npt.NDArray[np.float64]


def sections(quick: bool) -> list[Section]:
    """Theorem 1 and Eq. 5 on a tabular model; Eq. 4 on real data."""
    name = next((name for name in available(quick) if name != MADE_UP), MADE_UP)
    return [
        Section(
            "Theorem 1 and Eq. 5, on a tabular model",
            "at the optimum, scores plus the log-probabilities of the noise are those of the data "
            "up to a constant, for any noise.",
            "Six kinds of samples, eight classes, all probabilities known; a score of its own for "
            "each pair. Trained is AdversarialSoftmax with negative sampling, whose "
            "predict_log_proba corrects the scores. Expected loss is Eq. 2 with its expectations "
            "in closed form, minimised by Newton's method.",
            partial(_theorem1, (1, 10) if quick else (1, 10, 100, 400)),
        ),
        Section(
            "Theorem 2 and Eq. 4, the gradient's signal",
            "a gradient is as long as the probability that a drawn class is taken for the own "
            "one, which vanishes when classes are drawn blindly and stays when the tree draws.",
            f"{name}, one negative in each step, the default learning rate, no penalty; factors "
            "sigmoid(score) of one fresh draw for each of at most 2,000 training samples.",
            partial(_signal, name, quick),
        ),
    ]


@dataclass(frozen=True, eq=False)
class Tabular:
    """Samples `X`, each a unit vector that tells its kind, and their classes."""

    X: npt.NDArray[np.float32]
    y: npt.NDArray[np.int64]
    log_data: FloatArray  # (kinds, classes), as the samples have it

    @classmethod
    def drawn(cls, n_samples: int, seed: int) -> "Tabular":
        """Return samples in which each class has 2 % or more of every kind."""
        random = np.random.default_rng(seed)
        odds = 0.16 / _N_CLASSES + 0.84 * random.dirichlet(np.ones(_N_CLASSES), _N_KINDS)
        kinds = np.arange(n_samples) % _N_KINDS
        y = (odds.cumsum(axis=1)[kinds] < random.random((n_samples, 1))).sum(axis=1)
        y = np.minimum(y, _N_CLASSES - 1)
        counts = np.zeros((_N_KINDS, _N_CLASSES))
        np.add.at(counts, (kinds, y), 1)
        X = np.eye(_N_KINDS, dtype=np.float32)[kinds]
        return cls(X, y, np.log(counts / counts.sum(axis=1, keepdims=True)))

    def trained(self, noise: str, epochs: int) -> float:
        """Return the largest deviation of a corrected log-probability from that of the data."""
        tree = NoiseTree(regularizer=1.0, verbose=False)
        model = AdversarialSoftmax.paper(
            noise=tree if noise == "tree" else noise, learning_rate=0.1, epochs=epochs, n_jobs=1,
            verbose=False,
        )  # fmt: skip
        model.set_params(recipe__regularizer=0.0, recipe__validation_fraction=0.0)
        found = model.fit(self.X, self.y).predict_log_proba(_kinds(), _EVERY)
        return float(np.abs(found - self.log_data).max())

    def log_noise(self, noise: str) -> FloatArray:
        """Return the noise's log-probabilities, (kinds, classes)."""
        if noise == "tree":
            tree = NoiseTree(regularizer=1.0, verbose=False).fit(self.X, self.y)
            return tree.log_prob(_kinds(), _EVERY).astype(np.float64)
        counts = np.bincount(self.y) + 1.0 if noise == "frequency" else np.ones(_N_CLASSES)
        return np.tile(np.log(counts / counts.sum()), (_N_KINDS, 1))

    def optimum(self, noise: str) -> FloatArray:
        """Return the scores that minimise Eq. 2, each by Newton's method on its own."""
        p, q = np.exp(self.log_data), np.exp(self.log_noise(noise))
        scores = np.zeros_like(p)
        for _ in range(_NEWTON_STEPS):
            chance = expit(scores)
            gradient = q * chance - p * (1 - chance)
            scores -= np.clip(gradient / ((p + q) * chance * (1 - chance)), -1, 1)
        return scores

    def deviations(self, scores: FloatArray, noise: str) -> tuple[float, float]:
        """Return the largest deviations from the data, of corrected scores and of plain ones."""
        found = [log_softmax(s, axis=1) for s in (scores + self.log_noise(noise), scores)]
        corrected, uncorrected = (float(np.abs(f - self.log_data).max()) for f in found)
        return corrected, uncorrected


def _kinds() -> npt.NDArray[np.float32]:
    return np.eye(_N_KINDS, dtype=np.float32)


def _theorem1(epochs: tuple[int, ...]) -> Iterator[Block]:
    tabular = Tabular.drawn(n_samples=20_000, seed=0)
    rows: list[list[Cell]] = []
    for noise in NOISES:
        for n in epochs:
            rows.append(
                [f"{noise}, {n:,} epochs", Value(tabular.trained(noise, n), digits=3), None]
            )
        optimum = tabular.deviations(tabular.optimum(noise), noise)
        rows.append([f"{noise}, expected loss", *(Value(d, digits=6) for d in optimum)])
    yield Table(
        "Largest deviation of a log-probability from that of the data, over all pairs",
        ["noise", "corrected", "uncorrected"],
        rows,
    )


def _signal(name: str, quick: bool) -> Iterator[Block]:
    chosen = task(name, quick)
    warm_up(chosen.dense)
    yield chosen.in_words() + "."
    rows: list[list[Cell]] = []
    for method in ("adversarial", "frequency", "uniform"):
        for seconds in (0.05, 0.2) if quick else (0.3, 1.2, 5.0):
            setting = {**METHODS[method], "recipe__regularizer": 0.0}
            model, _ = train(chosen, setting, seconds)
            found = _factors(model, chosen)
            rows.append([
                f"{method}, {seconds:g} s", Value(100 * float((found > 0.1).mean())),
                Value(float(found.mean()), digits=4),
                *(Value(float(np.quantile(found, q)), digits=4) for q in (0.1, 0.5, 0.9)),
            ])  # fmt: skip
    columns = ["noise, training", "above 0.1, %", "mean", "10 %", "median", "90 %"]
    yield Table("The factor sigmoid(score of the drawn class)", columns, rows)


def _factors(model: AdversarialSoftmax, chosen: Task) -> FloatArray:
    """Return sigmoid(score) of a class drawn for each of some samples."""
    random = np.random.default_rng(2)
    X = chosen.X[random.permutation(chosen.X.shape[0])[:2_000]]
    if model.noise_.tree is not None:
        drawn: Any = model.noise_.tree.sample(X, rng=3)[:, 0]
    else:
        odds = model.counts_ + 1.0 if model.noise == "frequency" else np.ones(chosen.n_classes)
        drawn = random.choice(chosen.n_classes, (X.shape[0],), p=odds / odds.sum())
    weights: Any = model.scores_.weights[drawn]
    products = weights.multiply(X).sum(axis=1) if issparse(X) else (weights * X).sum(axis=1)
    return np.asarray(expit(np.asarray(products).ravel() + model.scores_.biases[drawn]))
