"""Figure 1 where the tree can see what tells classes apart, and where it cannot."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from papers.adversarial.readings import HOW, compared
from papers.adversarial.tasks import Samples, Task, as_matrix
from papers.contents import Block, Section

_N_FEATURES, _NOISE, _NUISANCE = 64, 0.45, 3.0
_PLACES = {"16 of 64 dimensions": (16, 0), "48 of 64 dimensions": (48, 0),
           "16, and 16 of nuisance": (16, 16)}  # fmt: skip
_FEW, _MANY = 10_000, 50_000  # classes


def sections(quick: bool) -> list[Section]:
    """A section for each place of the signal; quick: one of them."""
    if quick:
        return [_section("16 of 64 dimensions", 300, (0.05, 0.2), n_seeds=1)]
    few = [_section(place, _FEW, (0.2, 0.8, 3.0, 12.0)) for place in _PLACES]
    return [*few, _section("16 of 64 dimensions", _MANY, (1.0, 4.0, 13.0, 52.0))]


def _section(place: str, n_classes: int, points: tuple[float, ...], n_seeds: int = 3) -> Section:
    return Section(
        f"Figure 1 by where the class signal is: {place}, {n_classes:,} classes",
        "with classes drawn from the tree, training converges at least ten times as fast as "
        "with every baseline.",
        f"{n_classes:,} Gaussian classes with frequencies by Zipf's law, {5 * n_classes:,} "
        f"samples of {_N_FEATURES} features, turned at random: class means differ in some "
        "dimensions only; nuisance is large and the same for all classes. " + HOW,
        partial(_measure, place, n_classes, points, n_seeds),
    )


def gaussian_classes(
    n_classes: int, signal: int, nuisance: int, seed: int = 0, n_others: int = 4_000
) -> Task:
    """Classes whose means differ in `signal` dimensions; half of the others are to choose by."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, n_classes + 1)
    n = 5 * n_classes
    drawn = random.choice(n_classes, n + n_others - n_classes, p=shares / shares.sum())
    y = np.concatenate([np.arange(n_classes), drawn])
    y[:n] = random.permutation(y[:n])  # all classes have a training sample
    means = np.zeros((n_classes, _N_FEATURES))
    means[:, :signal] = random.standard_normal((n_classes, signal))
    X = means[y] + _NOISE * random.standard_normal((len(y), _N_FEATURES))
    X[:, signal : signal + nuisance] += _NUISANCE * random.standard_normal((len(y), nuisance))
    turn = np.linalg.qr(random.standard_normal((_N_FEATURES, _N_FEATURES)))[0]
    X = (X @ turn).astype(np.float32)
    half = n + n_others // 2
    validation, test = Samples(X[n:half], y[n:half]), Samples(X[half:], y[half:])
    return Task("Gaussian classes", X[:n], as_matrix(y[:n], n_classes), validation, test)


def _measure(
    place: str, n_classes: int, points: tuple[float, ...], n_seeds: int
) -> Iterator[Block]:
    signal, nuisance = _PLACES[place]
    chosen = gaussian_classes(n_classes, signal, nuisance)
    yield from compared(
        f"{n_classes:,} classes differ in {place}", chosen, points, n_seeds=n_seeds,
        discriminant=nuisance > 0,
    )  # fmt: skip
