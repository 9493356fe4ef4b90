"""Theorem 1 where it holds exactly, and Equation 4: how much a drawn class teaches."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from papers.adversarial.methods import ONE
from papers.adversarial.runs import Setting, run, warm_up
from papers.adversarial.tabular import Tabular
from papers.adversarial.tasks import MADE_UP, Task, available, task
from papers.contents import Cell, Part, Section, Table, Value
from papers.drawing import courses, lines
from umpteen.progress import progress_bar
from umpteen.softmax.noise import Noise
from umpteen.softmax.training import State

_NOISES: dict[str, Setting] = {
    "tree": {"frequency_share": 0.0},
    "frequency": {"noise": "frequency"},
    "uniform": {"noise": "uniform"},
}
_SHARES = np.linspace(0.01, 0.99, 50)

FloatArray = npt.NDArray[np.float64]


def sections(quick: bool) -> list[Section]:
    """Theorem 1 and Eq. 5 on a tabular model; Eq. 4 on real data."""
    name = next((name for name in available() if name != MADE_UP), MADE_UP)
    return [
        Section(
            "Theorem 1 and Eq. 5, on a tabular model",
            "at the optimum, scores plus the log-probabilities of the noise are those of the data "
            "up to a constant, for any noise.",
            "Six kinds of samples, eight classes, all probabilities known; a score of its own for "
            "each pair. The tree is a NoiseTree fitted to the drawn samples; trained by the "
            "kernels of AdversarialSoftmax.",
            partial(_theorem1, (1, 10) if quick else (1, 10, 100, 400)),
        ),
        Section(
            "Theorem 2 and Eq. 4, the gradient's signal",
            "a gradient is as long as the probability that a drawn class is taken for the own "
            "one, which vanishes when classes are drawn blindly and stays when the tree draws.",
            f"{name}, one negative in each step, AdversarialSoftmax's default learning rate, no "
            "penalty; factors sigmoid(score) of one fresh draw for each of at most 5,000 "
            "training samples.",
            partial(_signal, name, quick),
        ),
    ]


def _theorem1(epochs: tuple[int, ...]) -> Iterator[Part]:
    tabular = Tabular.drawn(n_samples=20_000, seed=0)
    rows: list[list[Cell]] = []
    with progress_bar("Theorem 1", 3) as bar:
        for name, noise in tabular.noises().items():
            for n, deviations in zip(epochs, tabular.trained(noise, epochs), strict=True):
                rows.append([f"{name}, {n:,} epochs", *(Value(d, digits=3) for d in deviations)])
            optimum = tabular.deviations(tabular.optimum(noise), noise)
            rows.append([f"{name}, expected loss", *(Value(d, digits=6) for d in optimum)])
            bar.advance()
    yield Table(
        "Largest deviation of a log-probability from that of the data, over all pairs",
        ["noise", "corrected", "uncorrected"],
        rows,
    )
    yield (
        "Expected loss: Eq. 2 with its expectations in closed form, minimised by Newton's method; "
        "what is left above is the randomness of steps."
    )


def _signal(name: str, quick: bool) -> Iterator[Part]:
    chosen = task(name, quick)
    warm_up(chosen)
    yield chosen.said() + "."
    found = {noise: _factors(chosen, noise, 0.5 if quick else 5.0) for noise in _NOISES}
    yield lines(
        "Share of drawn classes with a factor above 0.1", ["1/16", "1/4", "1"],
        {noise: [float((f > 0.1).mean()) for f in factors] for noise, factors in found.items()},
        x_label="part of the training", y_label="share",
    )  # fmt: skip
    last = {noise: factors[-1] for noise, factors in found.items()}
    yield courses(
        "Distribution of the factor in the end: the share of drawn classes that have less",
        {noise: np.maximum(np.quantile(f, _SHARES), 1e-8).tolist() for noise, f in last.items()},
        dict.fromkeys(last, _SHARES.tolist()),
        x_label="sigmoid(score of the drawn class)", y_label="share of draws",
    )  # fmt: skip
    rows: list[list[Cell]] = [
        [noise, Value(float(f.mean()), digits=4),
         *(Value(float(np.quantile(f, q)), digits=4) for q in (0.1, 0.5, 0.9))]
        for noise, f in last.items()
    ]  # fmt: skip
    columns = ["noise", "mean", "10 %", "median", "90 %"]
    yield Table("The factor in the end: mean and quantiles", columns, rows)


def _factors(chosen: Task, noise: str, seconds: float) -> list[npt.NDArray[np.float32]]:
    """After a sixteenth, a quarter and all of the training."""
    setting = {**ONE, "regularizer": 0.0, **_NOISES[noise]}
    return [
        _drawn(run(chosen, setting, part * seconds, free_noise=True).state, chosen)
        for part in (1 / 16, 1 / 4, 1)
    ]


def _drawn(state: State, chosen: Task) -> npt.NDArray[np.float32]:
    rows = np.random.default_rng(2).permutation(chosen.X.shape[0])[:5_000].astype(np.int32)
    noise: Noise = state.noise
    reduced = noise.reduce(chosen.X)
    ((labels, _),) = noise.visits(reduced, chosen.Y, [rows], 1, 3, 1)
    return np.asarray(expit(state.model.of_pairs(chosen.X[rows], labels[:, 1:]).ravel()))
