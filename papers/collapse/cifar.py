"""M-lab CIFAR-10 with a ResNet of 20 layers: all measures over training, decoders, fixed rows."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from papers import cifar
from papers.collapse.curves import falls
from papers.collapse.decoders import MEASURES, METHODS, Answers, answers
from papers.collapse.heads import n_learnt
from papers.collapse.stacking import stack_images
from papers.collapse.stacks import Measures, Sizes, Stacks, moments
from papers.contents import Block, Cell, Section, Table, over_seeds
from papers.drawing import lines
from papers.progress import progress_bar
from umpteen.collapse import EtfHead
from umpteen.metrics import tagwise_angle
from umpteen.neural import NetworkRecipe, NeuralClassifier, ResNet, blueprint

_SHIFT = 7  # pixels, as the paper's code moves CIFAR images
_ROUNDING = 1e-5
_SHRINK = 4  # from 64 x 64 pixels to 16 x 16
_PER_CLASS = {"train": 1_000, "test": 500}
_PENALTIES: dict[str, Any] = {"feature_penalty": 0.005, "weight_penalty": 0.001}
Answered = Mapping[str, Sequence[Mapping[str, Answers]]]  # of each run, by case and method
_MISSING = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]


@dataclass(frozen=True)
class Case:
    """A network, the label sets that it learns from, and how often it is trained."""

    sizes: Sizes
    learned: bool = True
    missing: Sequence[tuple[int, int]] = ()
    linear: bool = False  # whether features are without ReLU
    n_seeds: int = 1


@dataclass(frozen=True, eq=False)
class Run:
    """A trained network, what was measured meanwhile, and the CPU seconds that it took."""

    task: Stacks
    measures: Measures
    centered: list[float]  # NCm, of features without the offset that a ReLU leaves
    errors: list[float]  # on training samples, in %, when the others are measured
    model: Any
    seconds: float

    def curves(self) -> dict[str, list[float]]:
        """A curve for each measure; a classifier that is fixed as a simplex has none."""
        found = {**self.measures.curves(), "NCm, 2 labels, centred": self.centered}
        return {name: curve for name, curve in found.items() if max(curve) > _ROUNDING}


def sections(quick: bool) -> list[Section]:
    """One section, if the images are there."""
    if not cifar.is_there():
        return []
    single, pairs, n_seeds = (8, 2, 1) if quick else (40, 10, 3)
    groups = 2 * pairs, pairs, max(1, pairs // 8)
    balanced: Sizes = {1: single, 2: pairs}
    cases = {
        "learned": Case(balanced, n_seeds=n_seeds),
        "fixed simplex": Case(balanced, learned=False, n_seeds=n_seeds),
        "learned, pairs imbalanced": Case({1: single, 2: groups}, n_seeds=n_seeds),
        "learned, five pairs missing": Case(balanced, missing=_MISSING, n_seeds=n_seeds),
        "learned, no last ReLU": Case(balanced, linear=True),
    }
    epochs, depth = (2, 8) if quick else (60, 20)
    return [
        Section(
            "Figures 2 to 4, Tables 1 and 2 in small: M-lab CIFAR-10, ResNet",
            "all measures fall in the last phase of training, also if pairs are imbalanced or "
            "missing; the nearest mean (ONN) is right more often than thresholds (OvA); a fixed "
            "simplex is as good as a learned classifier. The paper trains ResNet-18 on 40,000 "
            "images of 64 x 64 pixels for 200 epochs.",
            f"CIFAR-10, padded and stacked as in the paper, then shrunk to 16 x 16 pixels; "
            f"{balanced} samples for each set of so many labels, or groups of {groups} samples per "
            f"pair; a ResNet of {depth} layers, {epochs} epochs of AdamW with batches of 64, "
            "learning rate 0.003, weight decay 0.05, penalties on features 0.005 and on the last "
            f"layer 0.001; {n_seeds} seed(s), without the last ReLU one. A sample is "
            "in error if its m highest scores are not those of its m labels. Features come after a "
            "ReLU and are not negative, so those of all pairs have a common offset; NCm is also "
            "given without it (centred). A small part of the paper's sizes: it shows the "
            "phenomenon on training samples, not the paper's accuracy.",
            partial(_measured, cases, epochs, depth),
        )
    ]


def _measured(cases: Mapping[str, Case], epochs: int, depth: int) -> Iterator[Block]:
    found: dict[str, list[Run]] = {}
    with progress_bar("M-lab CIFAR-10", sum(case.n_seeds for case in cases.values())) as advance:
        for name, case in cases.items():
            found[name] = []
            for seed in range(case.n_seeds):
                found[name].append(_run(case, epochs, depth, seed))
                advance()
    for name, runs in found.items():
        yield from _curves(name, runs)
    answered = {
        name: [answers(run.model, run.task) for run in runs] for name, runs in found.items()
    }
    yield _decoders(found, answered)
    yield _differences(found, answered)
    yield _ranking(found)


def _run(case: Case, epochs: int, depth: int, seed: int) -> Run:
    task = stacks(case.sizes, case.missing, seed)
    X, Y = task.train.X, task.train.Y
    measures = Measures(X, Y, moments(epochs))
    centered: list[float] = []
    errors: list[float] = []
    measures.also = lambda features: centered.append(tagwise_angle(features, Y, centered=True))

    def watch(model: NeuralClassifier) -> None:
        measures(model)
        if len(measures.epochs) > len(errors):
            errors.append(error(model, X, Y))

    began = time.process_time()
    model = _network(case, epochs, depth, seed).fit(X, Y, watch=watch)
    return Run(task, measures, centered, errors, model, time.process_time() - began)


def error(model: Any, X: Any, Y: Any) -> float:
    """Return the share of samples whose m highest scores are not those of their m labels, in %."""
    sizes = np.diff(Y.indptr)
    best = model.predict_topk(X, k=int(sizes.max())).labels.astype(np.int64)
    relevant = np.take_along_axis(Y.toarray(), best, axis=1) != 0
    right = relevant & (np.arange(best.shape[1]) < sizes[:, None])
    return 100 * float((right.sum(axis=1) < sizes).mean())


def _curves(name: str, runs: list[Run]) -> Iterator[Block]:
    first = runs[0]
    measures = first.measures
    yield f"{name}. {first.task.in_words()}"
    yield lines(
        f"{name}: all measures, on a logarithmic axis", measures.epochs, first.curves(),
        x_label="epochs", y_label="measure", logarithmic=True,
    )  # fmt: skip
    yield falls(first.curves())
    at = ", ".join(
        f"{error:.1f} % after {epoch}"
        for epoch, error in zip(measures.epochs, first.errors, strict=True)
    )
    last = ", ".join(f"{run.errors[-1]:.1f} %" for run in runs)
    yield f"{name}, training error by epoch, first seed: {at}. At the end, by seed: {last}."


def _decoders(found: Mapping[str, list[Run]], answered: Answered) -> Table:
    """All methods, for all test samples and by the number of labels."""
    rows: list[list[Cell]] = []
    for name, runs in found.items():
        for method in METHODS:
            scores = [_scores(run.task.test.Y, each[method].sets)
                      for run, each in zip(runs, answered[name], strict=True)]  # fmt: skip
            rows.append([f"{name}, {method}", *(over_seeds(column, digits=1)
                                                for column in np.transpose(scores))])  # fmt: skip
    columns = ["last layer, method", *MEASURES, *(f"F1, {m} label(s)" for m in (1, 2))]
    return Table(f"On the test part, in %; {', '.join(METHODS)} decode features", columns, rows)


def _differences(found: Mapping[str, list[Run]], answered: Answered) -> Table:
    """The nearest set minus one-vs-all with the threshold that is chosen for the measure."""
    opponents = {"F1, all pairs": "OvA, for F1", "F1, per sample": "OvA, for F1",
                 "subset accuracy": "OvA, for sets"}  # fmt: skip
    rows: list[list[Cell]] = []
    for name, runs in found.items():
        for measure, opponent in opponents.items():
            each = [
                100 * (MEASURES[measure](run.task.test.Y, by["ONN"].sets)
                       - MEASURES[measure](run.task.test.Y, by[opponent].sets))
                for run, by in zip(runs, answered[name], strict=True)
            ]  # fmt: skip
            listed = ", ".join(f"{gain:+.1f}" for gain in each)
            rows.append([f"{name}, {measure}", opponent, over_seeds(each, digits=1), listed])
    columns = ["last layer, measure", "compared with", "difference", "by seed"]
    return Table("ONN minus OvA on the same test samples, in points", columns, rows)


def _scores(Y: Any, sets: Any) -> list[float]:
    """Every measure, then F1 of samples with one label and with two, in %."""
    sizes, f1 = np.diff(Y.indptr), MEASURES["F1, all pairs"]
    by_number = [f1(Y[sizes == m], sets[sizes == m]) for m in (1, 2)]
    return [100 * each for each in (*(score(Y, sets) for score in MEASURES.values()), *by_number)]


def _ranking(found: Mapping[str, list[Run]]) -> Table:
    rows: list[list[Cell]] = []
    for name, runs in found.items():
        train = [100 * run.model.score(run.task.train.X, run.task.train.Y) for run in runs]
        test = [100 * run.model.score(run.task.test.X, run.task.test.Y) for run in runs]
        minutes = [run.seconds / 60 for run in runs]
        cells = (over_seeds(column, digits=1) for column in (train, test, minutes))
        rows.append([name, f"{n_learnt(runs[0].model):,}", *cells])
    columns = ["last layer", "parameters", "training, %", "test, %", "minutes of one core"]
    return Table("How often the best label is right, and what training took", columns, rows)


def stacks(sizes: Sizes, missing: Sequence[tuple[int, int]] = (), seed: int = 0) -> Stacks:
    """Stacks of CIFAR images; no original is in more than one part.

    Label sets that training samples miss are in the other parts, which are balanced.
    """
    train, test = cifar.images(_PER_CLASS["train"])
    half = len(train[1]) * 3 // 4
    parts = [(train[0][:half], train[1][:half]), (train[0][half:], train[1][half:]), test]
    fewer = {m: max(1, int(np.max(n)) // 2) for m, n in sizes.items()}
    made = [
        stack_images(
            *part, size, shift=_SHIFT, shrink=_SHRINK, random_state=3 * seed + i, missing=left_out
        )
        for i, (part, size, left_out) in enumerate(
            zip(parts, (sizes, fewer, fewer), (missing, (), ()), strict=True)
        )
    ]
    return Stacks("CIFAR-10", *made)


def _network(case: Case, epochs: int, depth: int, seed: int) -> NeuralClassifier:
    return NeuralClassifier(
        blueprint(ResNet, depth=depth, linear=case.linear),
        blueprint(EtfHead, learned=case.learned, **_PENALTIES),
        epochs=epochs, learning_rate=3e-3, batch_size=64, n_jobs=1, verbose=False,
        random_state=seed,
        recipe=NetworkRecipe(weight_decay=0.05, validation_fraction=0.0),
    )  # fmt: skip
